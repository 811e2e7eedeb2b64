// SPDX-License-Identifier: MIT
// The page: a realtime session, what was said, where the time went, and who
// holds how much memory. It talks to nothing but the server it came from.
import { Speaker } from "/web/speaker.js";
import { drawMemory } from "/web/memory.js";
import { Turn, drawTurn } from "/web/waterfall.js";

const RATE = 24000;
const $ = (id) => document.getElementById(id);
let key = sessionStorage.getItem("key") ?? "";
let ws = null, audio = null, mic = null, speaker = null, turn = null, home = null;
let told = null, telling = 0;         // what the session was told of the home; which telling is under way
let micSamples = 0, micEpoch = 0;      // how much was sent, and when its first sample was heard
const bubbles = new Map();             // item id -> <li>

// -- the server ---------------------------------------------------------------

async function api(path, body) {
  const headers = key ? { Authorization: "Bearer " + key } : {};
  if (body) headers["Content-Type"] = "application/json";
  const r = await fetch(path, { headers, method: body ? "POST" : "GET", body: body && JSON.stringify(body) });
  if (r.status === 401) { await askKey(); return api(path, body); }
  if (!r.ok) throw Object.assign(new Error((await r.json().catch(() => ({}))).error?.message ?? r.statusText), { status: r.status });
  return r.json();
}

let asking = null;
function askKey() {
  asking ??= new Promise((done) => {
    $("ask").showModal();
    $("ask").onclose = () => {
      key = $("key").value.trim();
      sessionStorage.setItem("key", key);
      asking = null;
      done();
    };
  });
  return asking;
}

// -- what is written ------------------------------------------------------------

function line(kind, text) {
  $("hello")?.remove();
  const li = document.createElement("li");
  li.className = kind;
  li.textContent = text;
  $("log").append(li);
  li.scrollIntoView({ block: "end" });
  return li;
}

function bubble(id, kind) {
  if (!bubbles.has(id)) bubbles.set(id, line(kind, ""));
  return bubbles.get(id);
}

function callLine(name, args) {
  const li = line("call", ""), b = document.createElement("b"), code = document.createElement("code");
  b.textContent = name;
  code.textContent = args;
  li.append(b, code);
  return code;
}

function state(text) { $("state").textContent = text; }

// -- the session ------------------------------------------------------------------

function send(event) { if (ws?.readyState === WebSocket.OPEN) ws.send(JSON.stringify(event)); }

function connect() {
  if (ws && ws.readyState <= WebSocket.OPEN) return ws.ready;
  const url = new URL("/v1/realtime", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  ws = new WebSocket(url, key ? ["realtime", "openai-insecure-api-key." + key] : ["realtime"]);
  ws.onmessage = (m) => take(JSON.parse(m.data));
  ws.onclose = () => { state("not connected"); stopMic(); };
  ws.ready = new Promise((ok, bad) => {
    ws.failed = bad;
    ws.onerror = () => bad(new Error("the server does not take the connection"));
    ws.first = ok;
  });
  return ws.ready;
}

// The home as it is now; false: there is none. Null until the server was asked.
async function readHome() {
  home = await api("/v1/home").catch((e) => { if (e.status === 404) return false; throw e; });
  if (home) {
    drawHome(home.state);
    if ($("hint")) $("hint").textContent = home.examples;   // gone with the first line
  }
}

function tell(text) {
  send({ type: "conversation.item.create", item: { type: "message", role: "system", content: [{ type: "input_text", text }] } });
}

// Before what is said next, if it can still come before it: the time, and only what changed since it was told.
async function tellNow() {
  if (!told) return;
  const mine = ++telling, session = ws;
  await readHome();
  if (mine !== telling || session !== ws || !home) return;
  const areas = new Map(), now = home.now.split("\n", 1)[0];
  home.says.forEach(({ area, text }, i) => {
    if (text !== told.says[i]?.text) areas.set(area, [...(areas.get(area) ?? []), text]);
  });
  if (areas.size || now !== told.now) tell([now, ...[...areas].map(([area, texts]) => area + ": " + texts.join("; "))].join("\n"));
  told = { now, says: home.says };
}

async function begin() {
  told = null;
  await readHome();
  const session = { type: "realtime", audio: { input: { turn_detection: { type: "server_vad", silence_duration_ms: 400 } } } };
  if (home) Object.assign(session, { instructions: home.instructions, tools: home.tools, temperature: 0 });
  send({ type: "session.update", session });
  if (home) {
    tell(home.now);
    told = { now: home.now.split("\n", 1)[0], says: home.says };
  }
  state("ready");
  ws.first();
}

// Where the clock of the sent audio stands, in the page's own time.
const heardAt = (ms) => micEpoch + ms;

function take(e) {
  const now = performance.now();
  switch (e.type) {
  case "session.created": begin().catch((err) => { ws.failed(err); ws.close(); }); break;
  case "input_audio_buffer.speech_started":
    speaker?.stop(send);
    turn = new Turn();
    turn.mark("speech", heardAt(e.audio_start_ms));
    state("listening");
    tellNow().catch((err) => line("error", err.message));
    break;
  case "input_audio_buffer.committed": telling++; break;   // too late to come before it: told with the next
  case "input_audio_buffer.speech_stopped":
    turn?.mark("spoken", heardAt(e.audio_end_ms));
    turn?.mark("endpoint", now);
    state("understanding");
    break;
  case "conversation.item.input_audio_transcription.delta": {
    const b = bubble(e.item_id, "you");
    b.classList.add("part");
    b.textContent += e.delta;
    break;
  }
  case "conversation.item.input_audio_transcription.completed": {
    const b = bubble(e.item_id, "you");
    b.classList.remove("part");
    b.textContent = e.transcript;
    turn?.mark("transcript", now);
    state("thinking");
    break;
  }
  case "conversation.item.input_audio_transcription.failed":
    bubbles.get(e.item_id)?.remove();
    state(e.error.code === "not_understood" ? "that was not understood" : e.error.message);
    break;
  case "response.output_text.delta":
  case "response.output_audio_transcript.delta":
    turn?.mark(turn.at.call === undefined ? "token" : "reply", now);
    bubble(e.item_id, "me").textContent += e.delta;
    break;
  case "response.output_audio.delta":
    turn?.mark("audio", now);
    speaker?.play(e.item_id, e.delta);
    state("speaking");
    break;
  case "response.function_call_arguments.done":
    turn?.mark("token", now);
    turn?.mark("call", now);
    act(e);
    break;
  case "response.done": finish(e.response); break;
  case "conversation.item.truncated": bubbles.get(e.item_id)?.classList.add("cut"); break;
  case "error":
    if (e.error.code !== "response_cancel_not_active") line("error", e.error.message);
    break;
  }
  if (turn) drawTurn($("waterfall"), $("total"), turn);
}

let results = [];
function act(e) {
  const code = callLine(e.name, e.arguments);
  results.push((async () => {
    let out;
    try {
      out = home ? await api("/v1/home/call", { name: e.name, arguments: JSON.parse(e.arguments) }) : { success: false, error: "there is no home here" };
    } catch (err) { out = { success: false, error: String(err.message) }; }
    code.textContent += "\n" + JSON.stringify(out.result ?? out);
    turn?.mark("done", performance.now());
    if (out.state) drawHome(out.state);
    send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: e.call_id, output: JSON.stringify(out.result ?? out) } });
  })());
}

async function finish(response) {
  const waiting = results;
  results = [];
  if (waiting.length && response.status === "completed") {
    await Promise.all(waiting);
    send({ type: "response.create" });
    return;
  }
  if (response.status === "failed") line("error", response.status_details?.error?.message ?? "the answer failed");
  quiet(turn);
}

// The turn is over when its last sound is.
function quiet(t) {
  if (t !== turn) return;
  if (speaker?.busy()) { setTimeout(quiet, Math.max(20, speaker.ends()), t); return; }
  if (t) {
    t.mark("end", performance.now());
    drawTurn($("waterfall"), $("total"), t);
  }
  state(mic ? "listening" : "ready");
}

// -- microphone and loudspeaker ------------------------------------------------------

async function openAudio() {
  audio ??= new AudioContext({ sampleRate: RATE });
  await audio.resume();
  speaker ??= new Speaker(audio);
}

function base64(pcm) {
  const b = new Uint8Array(pcm.buffer);
  let s = "";
  for (let i = 0; i < b.length; i++) s += String.fromCharCode(b[i]);
  return btoa(s);
}

async function startMic() {
  await openAudio();
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: false, autoGainControl: true } });
  await audio.audioWorklet.addModule("/web/mic.js");
  const node = new AudioWorkletNode(audio, "mic", { numberOfOutputs: 0 });
  node.port.onmessage = ({ data }) => {
    if (!micSamples) micEpoch = performance.now() - data.length / RATE * 1000;
    micSamples += data.length;
    send({ type: "input_audio_buffer.append", audio: base64(data) });
    let sum = 0;
    for (const v of data) sum += v * v;
    $("mic").style.setProperty("--level", 1 + Math.min(.9, Math.sqrt(sum / data.length) / 6000));
  };
  audio.createMediaStreamSource(stream).connect(node);
  mic = { stream, node };
  micSamples = 0;
  $("mic").setAttribute("aria-pressed", "true");
  state("listening");
}

function stopMic() {
  if (!mic) return;
  mic.stream.getTracks().forEach((t) => t.stop());
  mic.node.port.onmessage = null;
  mic.node.disconnect();
  mic = null;
  micSamples = 0;
  send({ type: "input_audio_buffer.clear" });
  $("mic").setAttribute("aria-pressed", "false");
  $("mic").style.removeProperty("--level");
  state("ready");
}

async function guarded(fn) {
  try { await fn(); } catch (e) { line("error", e.message); state("not connected"); }
}

$("mic").onclick = () => guarded(async () => {
  if (mic) return stopMic();
  if (!navigator.mediaDevices) throw new Error("the browser gives a microphone to localhost and HTTPS only");
  await connect();
  await startMic();
});

$("say").onsubmit = (ev) => {
  ev.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  $("text").value = "";
  guarded(async () => {
    await openAudio();
    await connect();
    await tellNow();
    speaker.stop(send);
    turn = new Turn();
    turn.mark("transcript", performance.now());
    line("you", text);
    send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text }] } });
    send({ type: "response.create" });
    state("thinking");
  });
};

// -- what is watched ------------------------------------------------------------------

const plain = (s) => s.replaceAll("_", " ");

function drawHome(list) {
  $("homecard").hidden = false;
  $("home").replaceChildren(...list.map((d) => {
    const div = document.createElement("div"), span = document.createElement("span");
    const s = d.state.state ?? "";
    div.className = "dev" + (["on", "playing", "unlocked", "open", "heat", "cleaning"].includes(s) ? " on" : "");
    div.textContent = d.name;
    const more = d.state.temperature ?? d.state.brightness ?? d.state.position ?? d.state.volume;
    span.textContent = d.domain === "todo" ? (d.state.items ?? []).join(", ") : plain(s) + (more === undefined ? "" : " · " + more) || plain(d.domain);
    div.append(span);
    return div;
  }));
}

async function watch() {
  try {
    const h = await fetch("/health").then((r) => r.json());
    $("health").className = "pill " + h.status;
    $("health").textContent = h.status === "ok" ? `${h.sessions.active} of ${h.sessions.total} sessions` : h.why || h.status;
    if (h.status !== "loading") {
      $("model").textContent = h.model;
      const m = await api("/v1/memory");
      $("backend").textContent = m.backend;
      drawMemory($("memory"), m);
      if (home === null) await readHome();
    }
  } catch {
    $("health").className = "pill gone";
    $("health").textContent = "the server is gone";
  }
  setTimeout(watch, document.hidden ? 5000 : 1000);
}
watch();
