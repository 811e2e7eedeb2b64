// SPDX-License-Identifier: MIT
// hearthd through the openai client, unchanged. Prints TAP. argv: base URL, key, WAV file.
import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_FROM + "/");
const { default: OpenAI, toFile } = require("openai");
const [url, key, wav] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0, timeout: 60000 });
let n = 0, failed = 0;

function check(ok, name, detail) {
  console.log(`${ok ? "ok" : "not ok"} ${++n} - openai client: ${name}`);
  if (!ok) { failed++; console.log("# " + JSON.stringify(detail)?.slice(0, 800)); }
}
async function group(name, fn) {
  try { await fn(); } catch (e) { check(false, name, String(e?.stack ?? e)); }
}
const messages = [{ role: "system", content: "You are a voice assistant for a home." }, { role: "user", content: "turn on the kitchen light" }];
const tools = [{ type: "function", function: { name: "HassTurnOn", description: "Turns on a device", strict: true, parameters: { type: "object",
  properties: { name: { type: "string", maxLength: 40 } }, required: ["name"], additionalProperties: false } } }];

await group("models", async () => {
  const list = await client.models.list();
  check(list.data.length === 1 && list.data[0].object === "model", "models", list.data);
});
await group("chat", async () => {
  const r = await client.chat.completions.create({ model: "home", messages, temperature: 0, max_completion_tokens: 40 });
  check(typeof r.choices[0].message.content === "string" && r.usage.total_tokens > 0, "chat", r);
  const s = await client.chat.completions.create({ model: "home", messages, temperature: 0, max_completion_tokens: 40, stream: true, stream_options: { include_usage: true } });
  let text = "", usage;
  for await (const c of s) { text += c.choices[0]?.delta?.content ?? ""; usage = c.usage ?? usage; }
  check(text === r.choices[0].message.content && usage.completion_tokens === r.usage.completion_tokens, "stream", { text, r });
});
await group("tools", async () => {
  const r = await client.chat.completions.create({ model: "home", messages, tools, tool_choice: "required", temperature: 0 });
  const c = r.choices[0].message.tool_calls[0];
  check(r.choices[0].finish_reason === "tool_calls" && typeof JSON.parse(c.function.arguments).name === "string", "tools", r);
  const runner = client.chat.completions.stream({ model: "home", messages, tools, tool_choice: "required", temperature: 0 });
  const done = await runner.finalChatCompletion();
  check(done.choices[0].message.tool_calls[0].function.arguments === c.function.arguments, "tools, streamed and put together by the client", done);
  const follow = await client.chat.completions.create({ model: "home", temperature: 0, max_tokens: 40, tools, messages: [...messages, r.choices[0].message,
    { role: "tool", tool_call_id: c.id, content: "{\"success\":true}" }] });
  check(follow.choices[0].message.role === "assistant", "the call goes back with its result", follow);
});
await group("json schema", async () => {
  const r = await client.chat.completions.create({ model: "home", messages, temperature: 1, seed: 3, response_format: { type: "json_schema", json_schema: { name: "s", strict: true,
    schema: { type: "object", properties: { room: { enum: ["kitchen", "hall"] } }, required: ["room"], additionalProperties: false } } } });
  check(["kitchen", "hall"].includes(JSON.parse(r.choices[0].message.content).room), "json schema", r);
});
await group("responses", async () => {
  const r = await client.responses.create({ model: "home", input: "say something", temperature: 0, max_output_tokens: 30 });
  check(typeof r.output_text === "string" && r.output_text.length > 0, "responses", r);
  const s = await client.responses.create({ model: "home", input: "say something", temperature: 0, max_output_tokens: 30, stream: true });
  let text = "", last;
  for await (const e of s) { if (e.type === "response.output_text.delta") text += e.delta; last = e.type; }
  check(text === r.output_text && /^response\.(completed|incomplete)$/.test(last), "responses, streamed", { text, last });
});
await group("errors", async () => {
  const err = await client.chat.completions.create({ model: "nope", messages }).catch((e) => e);
  check(err instanceof OpenAI.NotFoundError && /nope/.test(err.message), "an unknown model is NotFoundError", err);
  const bad = await new OpenAI({ baseURL: url, apiKey: "wrong-wrong-wrong-wrong", maxRetries: 0 }).models.list().catch((e) => e);
  check(bad instanceof OpenAI.AuthenticationError, "a wrong key is AuthenticationError", String(bad));
});
await group("abort", async () => {
  const s = await client.chat.completions.create({ model: "home", messages, temperature: 1, max_tokens: 1500, stream: true });
  for await (const c of s) { if (c.choices[0]) { s.controller.abort(); break; } }
  const r = await client.chat.completions.create({ model: "home", messages, max_tokens: 5 });
  check(r.choices.length === 1, "a stream that is aborted leaves the server serving", r);
});
await group("audio", async () => {
  const head = { wav: "RIFF", flac: "fLaC", opus: "OggS", mp3: "" };
  for (const response_format of ["wav", "pcm", "flac", "opus", "mp3"]) {
    const sp = await client.audio.speech.create({ model: "tts-1", voice: "slt", input: "Turn on the kitchen light.", response_format }).catch((e) => e);
    if (sp instanceof OpenAI.BadRequestError) {   // an older libsndfile: said, not sent as something else
      check(["opus", "mp3"].includes(response_format) && sp.message.includes(response_format), `speech as ${response_format}: refused by name`, String(sp));
      continue;
    }
    const buf = Buffer.from(await sp.arrayBuffer());
    check(buf.length > 2000 && buf.subarray(0, 4).toString("latin1").startsWith(head[response_format] ?? ""), `speech as ${response_format}`, buf.length);
  }
  const file = () => toFile(fs.readFileSync(wav), "a.wav");
  const t = await client.audio.transcriptions.create({ model: "whisper-1", file: await file() });
  check(typeof t.text === "string", "transcription", t);
  const v = await client.audio.transcriptions.create({ model: "whisper-1", file: await file(), response_format: "verbose_json", timestamp_granularities: ["segment"] });
  check(v.duration > 1 && Array.isArray(v.segments) && v.segments.map((x) => x.text).filter(Boolean).join(" ") === v.text, "transcription, verbose", v);
  for (const response_format of ["text", "srt", "vtt"]) {
    const x = await client.audio.transcriptions.create({ model: "whisper-1", file: await file(), response_format });
    check(typeof x === "string" && (response_format !== "vtt" || x.startsWith("WEBVTT")), `transcription as ${response_format}`, x);
  }
  const s = await client.audio.transcriptions.create({ model: "whisper-1", file: await file(), stream: true });
  let text = "", last;
  for await (const e of s) { if (e.type === "transcript.text.delta") text += e.delta; last = e; }
  check(last.type === "transcript.text.done" && last.text === text, "transcription, streamed", { text, last });
  const bad = await client.audio.transcriptions.create({ model: "whisper-1", file: await toFile(Buffer.from("no sound"), "a.wav") }).catch((e) => e);
  check(bad instanceof OpenAI.BadRequestError, "what is no audio is BadRequestError", String(bad));
});
console.log(`1..${n}`);
process.exit(failed ? 1 : 0);
