// What the model did with a text: numbers unpacked from the bytes that the kernel sent.

const wholes = (value) => {
  const bytes = aligned(bytesOf(value), 4);
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
};

class Record {
  constructor(content, plan) {
    Object.assign(this, content);
    [this.S, this.T, this.C] = [content.places.length, content.tokens.length, plan.width];
    const words = wordsOf(content.stream.words);
    this.words = new Int16Array(words.buffer, words.byteOffset, words.length);
    this.matrices = content.attention && new Matrices({ ...content.attention, version: content.version });
    const { stopped, next, hidden } = content;
    this.stoppedIds = wholes(stopped.ids);
    this.stoppedChances = floatsOf(stopped.chances);
    this.nextIds = wholes(next.ids);
    [this.logits, this.trained, this.sums] = [next.logits, next.trained, next.sums].map(floatsOf);
    if (hidden) [this.unitIds, this.units, this.active] = [wholes(hidden.ids), floatsOf(hidden.values), wholes(hidden.active)];
  }

  // The vector of one token behind a place: Float32Array (C).
  vector(place, t) {
    const start = (place * this.T + t) * this.C;
    return Float32Array.from(this.words.subarray(start, start + this.C), (word) => word * this.stream.step);
  }

  // Where the numbers of a token are, for which the lens was asked; the last if it was not asked for this one.
  column(t) {
    const found = this.at.indexOf(t);
    return found < 0 ? this.at.length - 1 : found;
  }

  // What would come next if the model stopped behind a place: [{token, chance}].
  stop(place, t) {
    const most = this.stoppedIds.length / this.S / this.at.length;
    const start = (place * this.at.length + this.column(t)) * most;
    return Array.from({ length: most }, (_, n) => ({ id: this.stoppedIds[start + n], token: this.names[this.stoppedIds[start + n]], chance: this.stoppedChances[start + n] }));
  }

  // The most likely next tokens, largest first: [{id, token, logit, now, trained}].
  following(t, temperature) {
    const most = this.nextIds.length / this.at.length;
    const column = this.column(t);
    const heat = Math.round(10 * temperature);
    const chance = (n) => (heat ? Math.exp(this.logits[n] / (heat / 10) - this.sums[(heat - 1) * this.at.length + column]) : +(n % most === 0));
    return Array.from({ length: most }, (_, i) => {
      const n = column * most + i;
      return { id: this.nextIds[n], token: this.names[this.nextIds[n]], logit: this.logits[n], now: chance(n), trained: this.trained[n] };
    });
  }

  // The strongest hidden units of one MLP for one token: {top: [[unit, value]], active: how many are above 0}.
  strongest(layer, t) {
    const { most } = this.hidden;
    const start = (layer * this.T + t) * most;
    return { top: Array.from({ length: most }, (_, n) => [this.unitIds[start + n], this.units[start + n]]), active: this.active[layer * this.T + t] };
  }
}

const sizeOf = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));

// Draws a vector as a strip of colours, by the square root of each number, as weights are; of more numbers than pixels
// the largest are shown.
function paintStrip(view, canvas, vector, most, width, height, down) {
  const surface = sized(view, canvas, width, height);
  const scale = colourScale(view.theme.palette, -most, most);
  const dense = Math.floor((down ? height : width) * (view.win.devicePixelRatio || 1));
  const step = Math.max(1, Math.ceil(vector.length / dense));
  const cells = Math.ceil(vector.length / step);
  const image = make(view.doc, "canvas");
  [image.width, image.height] = down ? [1, cells] : [cells, 1];
  const ink = image.getContext("2d");
  const data = ink.createImageData(image.width, image.height);
  const pixels = new Uint32Array(data.data.buffer);
  for (let n = 0; n < cells; n++) {
    let best = 0;
    for (let i = n * step; i < Math.min(vector.length, (n + 1) * step); i++) if (Math.abs(vector[i]) > Math.abs(best)) best = vector[i];
    pixels[n] = scale.pixels[(scale.place(Math.sign(best) * Math.sqrt(Math.abs(best) * most)) * 255 + 0.5) | 0];
  }
  ink.putImageData(data, 0, 0);
  surface.imageSmoothingEnabled = false;
  surface.drawImage(image, 0, 0, width, height);
}
