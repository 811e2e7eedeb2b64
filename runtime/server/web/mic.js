// SPDX-License-Identifier: MIT
// On the audio thread: what the microphone hears, as 16-bit pieces of 40 ms.
class Mic extends AudioWorkletProcessor {
  constructor() {
    super();
    this.buf = new Int16Array(sampleRate / 25);
    this.n = 0;
  }
  process(inputs) {
    const ch = inputs[0][0];
    for (let i = 0; ch && i < ch.length; i++) {
      this.buf[this.n++] = Math.max(-1, Math.min(1, ch[i])) * 32767;
      if (this.n === this.buf.length) {
        this.port.postMessage(this.buf.slice());
        this.n = 0;
      }
    }
    return true;
  }
}
registerProcessor("mic", Mic);
