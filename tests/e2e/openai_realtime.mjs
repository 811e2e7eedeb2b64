// SPDX-License-Identifier: MIT
// The realtime class of the openai client, unchanged, over TLS. Prints TAP.
// argv: base URL (https), key, CA certificate, raw PCM of a command (24 kHz)
import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_FROM + "/");
const { default: OpenAI } = require("openai");
const { OpenAIRealtimeWS } = require("openai/realtime/ws");
const [url, key, ca, pcmPath] = process.argv.slice(2);
const pcm = fs.readFileSync(pcmPath);
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
let n = 0, failed = 0;

function check(ok, name, detail) {
  console.log(`${ok ? "ok" : "not ok"} ${++n} - openai realtime: ${name}`);
  if (!ok) { failed++; console.log("# " + JSON.stringify(detail)?.slice(0, 1200)); }
}

class Session {
  constructor(props = { model: "home" }) {
    this.events = [];
    this.waiting = [];
    this.errors = [];
    this.rt = new OpenAIRealtimeWS({ ...props, options: { ca: fs.readFileSync(ca) } }, client);
    this.rt.on("event", (e) => { this.events.push(e); this.waiting.splice(0).forEach((f) => f()); });
    this.rt.on("error", (e) => { this.errors.push(e); this.waiting.splice(0).forEach((f) => f()); });
    this.seen = 0;
  }
  send(e) { this.rt.send(e); }
  // everything up to and with the first event of one of the types
  async until(...types) {
    const from = this.seen, end = Date.now() + 120000;
    for (;;) {
      for (; this.seen < this.events.length; this.seen++)
        if (types.includes(this.events[this.seen].type)) return this.events.slice(from, ++this.seen);
      if (Date.now() > end) throw new Error("no " + types + " after " + JSON.stringify(this.events.slice(-5).map((e) => e.type)));
      await Promise.race([new Promise((r) => this.waiting.push(r)), new Promise((r) => setTimeout(r, 1000))]);
    }
  }
  audio(buf) {
    for (let i = 0; i < buf.length; i += 9600) this.send({ type: "input_audio_buffer.append", audio: buf.subarray(i, i + 9600).toString("base64") });
  }
  close() { this.rt.close(); }
}
async function group(name, fn) {
  try { await fn(); } catch (e) { check(false, name, String(e?.stack ?? e)); }
}
const tools = [{ type: "function", name: "HassTurnOn", description: "Turns on a device", parameters: { type: "object",
  properties: { name: { type: "string", maxLength: 40 } }, required: ["name"], additionalProperties: false } }];
const last = (ev) => ev[ev.length - 1];
const silence = Buffer.alloc(48000);

await group("text", async () => {
  const s = new Session();
  check((await s.until("session.created"))[0].session.model === "home", "connects by wss, session.created first", s.events);
  s.send({ type: "session.update", session: { type: "realtime", instructions: "You are a voice assistant for a home.", output_modalities: ["text"], tools } });
  const u = last(await s.until("session.updated")).session;
  check(u.output_modalities[0] === "text" && u.tools[0].type === "function" && u.tools[0].name === "HassTurnOn" && u.audio.input.format.rate === 24000, "session.updated in today's form", u);
  s.send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text: "turn on the kitchen light" }] } });
  s.send({ type: "response.create", response: { tool_choice: "required", metadata: { a: "b" } } });
  let ev = await s.until("response.done");
  const done = last(ev).response, call = done.output.find((o) => o.type === "function_call");
  check(done.status === "completed" && done.metadata?.a === "b" && typeof JSON.parse(call.arguments).name === "string" &&
    ev.find((e) => e.type === "response.function_call_arguments.done").arguments === call.arguments, "a forced call, in its events and in response.done", done);
  s.send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: call.call_id, output: '{"success":true}' } });
  s.send({ type: "response.create", response: { tool_choice: "none", max_output_tokens: 30 } });
  ev = await s.until("response.done");
  const text = ev.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
  const item = last(ev).response.output[0];
  check(text.length > 0 && item.content[0].text === text && ev.find((e) => e.type === "response.content_part.done").part.text === text, "its result, then words: deltas, part and item agree", ev.map((e) => e.type));
  check(last(ev).response.usage.input_tokens > 0, "usage");
  // each item says which one it follows: put together by that, the conversation is in order
  const added = s.events.filter((e) => e.type === "conversation.item.added");
  check(added.length === 4 && added.every((e, i) => e.previous_item_id === (i ? added[i - 1].item.id : null)), "items follow each other", added.map((e) => [e.previous_item_id, e.item.id]));
  s.send({ type: "response.cancel" });
  await new Promise((r) => setTimeout(r, 300));
  check(s.errors.length === 1 && s.errors[0].error.code === "response_cancel_not_active", "cancel of nothing is an error", s.errors.map(String));
  s.send({ type: "conversation.item.retrieve", item_id: item.id });
  check(last(await s.until("conversation.item.retrieved")).item.content[0].text === text, "and the session lives on");
  s.close();
});

await group("voice", async () => {
  const s = new Session();
  await s.until("session.created");
  // The home's own prompt and tools, as the page has them: without them a model of a home has nothing to say.
  const home = await fetch(url + "/home", { headers: { Authorization: "Bearer " + key } }).then((r) => r.json());
  s.send({ type: "session.update", session: { type: "realtime", instructions: home.instructions, tools: home.tools, temperature: 0,
    audio: { input: { turn_detection: { type: "server_vad", silence_duration_ms: 300, threshold: 0.5, prefix_padding_ms: 200 } } } } });
  await s.until("session.updated");
  s.audio(Buffer.concat([silence, pcm, silence, silence]));
  let ev = await s.until("response.done", "conversation.item.input_audio_transcription.failed");
  let kinds = ev.map((e) => e.type);
  const started = ev.find((e) => e.type === "input_audio_buffer.speech_started");
  check(started && kinds.indexOf("input_audio_buffer.speech_stopped") > kinds.indexOf("input_audio_buffer.speech_started"), "server VAD finds the turn", kinds);
  const heard = ev.find((e) => e.type === "conversation.item.input_audio_transcription.completed");
  check(heard && /kitchen/.test(heard.transcript) && heard.item_id === started.item_id, "it is transcribed", heard ?? kinds);
  for (let calls; (calls = last(ev).response?.output.filter((o) => o.type === "function_call"))?.length;) {
    for (const c of calls)
      s.send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: c.call_id, output: '{"success":true,"changed":[{"name":"Kitchen Light","state":"on"}]}' } });
    s.send({ type: "response.create" });
    ev = await s.until("response.done");
  }
  const sound = ev.filter((e) => e.type === "response.output_audio.delta").map((e) => Buffer.from(e.delta, "base64"));
  const bytes = sound.reduce((a, b) => a + b.length, 0), done = last(ev).response;
  check(done.status === "completed" && bytes > 4800, "and answered in sound", { kinds: ev.map((e) => e.type), bytes });
  if (bytes) {
    const id = ev.find((e) => e.type === "response.output_audio.delta").item_id, ms = Math.floor(bytes / 48), whole = done.output.find((o) => o.id === id).content[0].transcript;
    s.send({ type: "conversation.item.truncate", item_id: id, content_index: 0, audio_end_ms: ms + 5000 });
    await new Promise((r) => setTimeout(r, 300));
    check(last(s.errors)?.error.param === "audio_end_ms", "truncate beyond the sound is an error", s.errors.map(String));
    s.send({ type: "conversation.item.truncate", item_id: id, content_index: 0, audio_end_ms: Math.floor(ms / 2) });
    await s.until("conversation.item.truncated");
    s.send({ type: "conversation.item.retrieve", item_id: id });
    const cut = last(await s.until("conversation.item.retrieved")).item.content[0].transcript;
    check(cut.length < whole.length && whole.startsWith(cut), "truncate leaves what was heard", { whole, cut });
  }
  // barge-in: an answer that would go on for long, and speech into it
  s.send({ type: "session.update", session: { type: "realtime", temperature: 2 } });
  await s.until("session.updated");
  s.send({ type: "response.create" });
  await s.until("response.created");
  s.audio(Buffer.concat([silence, pcm, silence, silence]));
  ev = await s.until("response.done");
  if (last(ev).response.status === "cancelled") {
    check(last(ev).response.status_details.reason === "turn_detected", "speech cancels the answer that runs", last(ev).response);
  } else {
    console.log(`ok ${++n} - openai realtime: speech cancels the answer # SKIP it was over before the speech came (${last(ev).response.status})`);
  }
  await s.until("conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed");
  s.send({ type: "response.cancel" });
  s.send({ type: "session.update", session: { type: "realtime", instructions: "x", audio: { input: { turn_detection: null } } } });
  check(last(await s.until("session.updated")).session.audio.input.turn_detection === null, "the session is not deaf or dumb afterwards");
  s.audio(pcm);
  s.send({ type: "input_audio_buffer.commit" });
  check(["conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed"].includes(last(await s.until(
    "conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed")).type), "manual turns: commit transcribes");
  s.close();
});

await group("transcription", async () => {
  const s = new Session({ intent: "transcription" });
  await s.until("session.created");
  s.audio(Buffer.concat([silence, pcm, silence, silence]));
  await s.until("conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed");
  await new Promise((r) => setTimeout(r, 500));
  check(!s.events.some((e) => e.type.startsWith("response.")), "transcription alone is not answered", s.events.map((e) => e.type));
  s.close();
});
console.log(`1..${n}`);
process.exit(failed ? 1 : 0);
