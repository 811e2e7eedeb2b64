// SPDX-License-Identifier: MIT
// The moments of a turn as this page saw them, and the bars between them.
// What did not happen has no bar: nothing is estimated.
const BARS = [
  ["you spoke", "speech", "spoken", "--blue"],
  ["is that all?", "spoken", "endpoint", "--dim"],
  ["understanding", "endpoint", "transcript", "--warn"],
  ["first words", "transcript", "token", "--fire"],
  ["acting", "call", "done", "--ok"],
  ["answering", "done", "reply", "--fire"],
  ["finding a voice", ["reply", "token"], "audio", "--warn"],
  ["speaking", "audio", "end", "--ok"],
];

export class Turn {
  constructor() { this.at = {}; }
  mark(name, ms) { this.at[name] ??= ms; }
  bars() {
    const out = [];
    for (const [label, from, to, color] of BARS) {
      const a = [from].flat().map((f) => this.at[f]).find((v) => v !== undefined), b = this.at[to];
      if (a !== undefined && b !== undefined && b >= a) out.push({ label, a, b, color });
    }
    return out;
  }
}

export function drawTurn(box, total, turn) {
  const bars = turn.bars();
  if (!bars.length) return;
  const t0 = bars[0].a, t1 = Math.max(...bars.map((b) => b.b)), span = Math.max(1, t1 - t0);
  box.className = "";
  box.replaceChildren(...bars.map(({ label, a, b, color }) => {
    const row = document.createElement("div"), name = document.createElement("span"), track = document.createElement("div"), bar = document.createElement("i"), ms = document.createElement("span");
    row.className = "row";
    name.textContent = label;
    track.className = "track";
    bar.style.left = (a - t0) / span * 100 + "%";
    bar.style.width = (b - a) / span * 100 + "%";
    bar.style.setProperty("--c", `var(${color})`);
    track.append(bar);
    ms.className = "ms";
    ms.textContent = b - a < 1000 ? Math.round(b - a) + " ms" : ((b - a) / 1000).toFixed(2) + " s";
    row.append(name, track, ms);
    return row;
  }));
  const from = turn.at.spoken ?? turn.at.transcript;
  if (turn.at.audio !== undefined && from !== undefined)
    total.textContent = `${Math.round(turn.at.audio - from)} ms from your last word to the first sound`;
}
