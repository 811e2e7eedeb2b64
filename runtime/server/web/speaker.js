// SPDX-License-Identifier: MIT
// Plays what comes, in order, and knows how much of an item was heard.
export class Speaker {
  constructor(audio) {
    this.audio = audio;
    this.at = 0;           // when the next piece begins
    this.pieces = [];      // { item, node, from, to } in the audio clock
  }
  play(item, base64) {
    const raw = atob(base64), n = raw.length >> 1;
    if (!n) return;
    const buf = this.audio.createBuffer(1, n, 24000), to = buf.getChannelData(0);
    for (let i = 0; i < n; i++) {
      const v = raw.charCodeAt(2 * i) | raw.charCodeAt(2 * i + 1) << 8;
      to[i] = (v << 16 >> 16) / 32768;
    }
    const node = this.audio.createBufferSource();
    node.buffer = buf;
    node.connect(this.audio.destination);
    const from = Math.max(this.at, this.audio.currentTime + .03);
    node.start(from);
    this.at = from + buf.duration;
    const piece = { item, node, from, to: this.at };
    this.pieces.push(piece);
    node.onended = () => { piece.over = true; };
  }
  busy() { return this.at > this.audio.currentTime; }
  ends() { return (this.at - this.audio.currentTime) * 1000; }    // ms from now
  // Silence at once; the server is told how much of the item was heard.
  stop(send) {
    if (this.busy() && this.pieces.length) {
      const now = this.audio.currentTime, item = this.pieces[this.pieces.length - 1].item;
      let heard = 0;
      for (const p of this.pieces) {
        if (p.item === item) heard += Math.max(0, Math.min(now, p.to) - p.from);
        if (!p.over) p.node.stop();
      }
      send({ type: "conversation.item.truncate", item_id: item, content_index: 0, audio_end_ms: Math.floor(heard * 1000) });
    }
    this.pieces = [];
    this.at = 0;
  }
}
