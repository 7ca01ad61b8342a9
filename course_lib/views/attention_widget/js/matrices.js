// The numbers: weights unpacked head by head, when they are looked at, and the scores computed from queries and keys.

const MOST_CACHED = 12e6; // numbers kept unpacked (48 MB); beyond that the oldest head is unpacked again when needed

class Matrices {
  constructor(content) {
    Object.assign(this, content);
    [this.L, this.H, this.Q, this.K] = content.shape;
    this.size = this.Q * this.K;
    this.cache = new Map();
    this.layers = content.layers.map((layer) => layer && wordsOf(layer));
    if (content.mask) this.bits = bytesOf(content.mask.bits);
    this.heads = content.mask && !content.mask.shared ? this.L * this.H : 1; // how many masks there are
    this.stride = Math.ceil(this.size / 8);
    this.starts = new Map();
    this.switchedOff = new Set((content.off ?? []).map(([l, h]) => l * this.H + h));
    if (content.stages) this.projections = { q: floatsOf(content.stages.q), k: floatsOf(content.stages.k) };
  }

  has(l) {
    return this.layers[l] !== null;
  }

  allowed(l, h, q, k) {
    return !this.bits || this.bit(l, h, q * this.K + k);
  }

  bit(l, h, n) {
    const start = this.heads === 1 ? 0 : (l * this.H + h) * this.stride;
    return (this.bits[start + (n >> 3)] >> (7 - (n & 7))) & 1;
  }

  // Where the numbers of each head of a layer start: heads may be allowed different numbers of cells.
  start(l, h) {
    if (!this.bits) return h * this.size;
    const mask = this.heads === 1 ? 0 : l;
    if (!this.starts.has(mask)) {
      const starts = [0];
      let cells = 0;
      for (let head = 0; head < this.H; head++) {
        if (head === 0 || this.heads > 1) {
          cells = 0;
          for (let n = 0; n < this.size; n++) cells += this.bit(l, head, n);
        }
        starts.push(starts[head] + cells);
      }
      this.starts.set(mask, starts);
    }
    return this.starts.get(mask)[h];
  }

  // The matrix of one head: Float32Array (Q·K), NaN where the query may not look. `range`: its smallest and largest.
  matrix(l, h, stage = "weights") {
    const name = `${stage} ${l} ${h}`;
    let found = this.cache.get(name);
    if (!found) {
      found = { values: stage === "weights" ? this.unpack(l, h) : this.score(l, h, stage), rows: new Set(), columns: new Set() };
      found.range = rangeOf(found.values, this.K, 0);
      this.cache.set(name, found);
      while (this.cache.size > 2 && this.cache.size * this.size > MOST_CACHED) this.cache.delete(this.cache.keys().next().value);
    }
    return found;
  }

  unpack(l, h) {
    const values = new Float32Array(this.size);
    const [low, high] = this.code;
    const step = (high - low) / 65535;
    const words = this.layers[l];
    let at = this.start(l, h);
    if (!this.bits) for (let n = 0; n < this.size; n++) values[n] = low + step * words[at++];
    else for (let n = 0; n < this.size; n++) values[n] = this.bit(l, h, n) ? low + step * words[at++] : NaN;
    return values;
  }

  score(l, h, stage) {
    const D = this.stages.size;
    const factor = stage === "scaled" ? this.stages.scale : 1;
    const q = this.projections.q.subarray((l * this.H + h) * this.Q * D, (l * this.H + h + 1) * this.Q * D);
    const k = this.projections.k.subarray((l * this.H + h) * this.K * D, (l * this.H + h + 1) * this.K * D);
    const values = new Float32Array(this.size);
    for (let i = 0, n = 0; i < this.Q; i++) {
      for (let j = 0; j < this.K; j++, n++) {
        if (stage === "scaled" && this.bits && !this.bit(l, h, n)) {
          values[n] = NaN;
          continue;
        }
        let sum = 0;
        for (let d = 0; d < D; d++) sum += q[i * D + d] * k[j * D + d];
        values[n] = sum * factor;
      }
    }
    return values;
  }

  // The D products whose sum is the score of one cell.
  products(l, h, i, j) {
    const D = this.stages.size;
    const q = this.projections.q.subarray(((l * this.H + h) * this.Q + i) * D, ((l * this.H + h) * this.Q + i + 1) * D);
    const k = this.projections.k.subarray(((l * this.H + h) * this.K + j) * D, ((l * this.H + h) * this.K + j + 1) * D);
    return Array.from(q, (value, d) => ({ d, q: value, k: k[d], product: value * k[d] }));
  }

  // Exact numbers from the kernel take the place of those that were sent in 16 bits.
  correct({ layer, head, query, key }, row, column) {
    const known = this.matrix(layer, head);
    if (query !== null) {
      row.forEach((value, j) => Number.isNaN(known.values[query * this.K + j]) || (known.values[query * this.K + j] = value));
      known.rows.add(query);
    }
    if (key !== null) {
      column.forEach((value, i) => Number.isNaN(known.values[i * this.K + key]) || (known.values[i * this.K + key] = value));
      known.columns.add(key);
    }
  }

  isExact(l, h, q, k, stage) {
    if (stage !== "weights") return true; // queries and keys are sent as they are
    const known = this.matrix(l, h);
    return known.rows.has(q) || known.columns.has(k);
  }
}

// [smallest, largest] of the columns from `first` on; [0, 1] if there is nothing but NaN.
function rangeOf(values, K, first) {
  let low = Infinity;
  let high = -Infinity;
  for (let n = 0; n < values.length; n++) {
    if (first && n % K < first) continue;
    if (values[n] < low) low = values[n];
    if (values[n] > high) high = values[n];
  }
  return low <= high ? [low, high] : [0, 1];
}

// The largest of a row (or column) of the matrix: {top: [[place, value], …], rest: {count, sum}, barred: count}
function largest(values, start, step, length, most, skip = -1) {
  const places = [];
  let barred = 0;
  for (let n = 0; n < length; n++) {
    if (n === skip) continue;
    if (Number.isNaN(values[start + n * step])) barred++;
    else places.push(n);
  }
  const at = (n) => values[start + n * step];
  places.sort((a, b) => at(b) - at(a) || a - b);
  const rest = places.slice(most);
  return {
    top: places.slice(0, most).map((n) => [n, at(n)]),
    rest: { count: rest.length, sum: rest.reduce((sum, n) => sum + at(n), 0) },
    barred,
  };
}

// What stands out in a matrix: its largest cells [query, key, value], and the keys that are read most on average.
function summaryOf(known, Q, K, hidden, most = 5) {
  const name = `summary ${hidden}`;
  if (known[name]) return known[name];
  const { values } = known;
  const cells = [];
  const [sums, counts] = [new Float64Array(K), new Uint32Array(K)];
  for (let n = 0; n < values.length; n++) {
    const value = values[n];
    const key = n % K;
    if (value !== value || key < hidden) continue;
    sums[key] += value;
    counts[key]++;
    if (cells.length === most && value <= cells[most - 1][2]) continue;
    cells.push([Math.floor(n / K), key, value]);
    cells.sort((a, b) => b[2] - a[2] || a[0] - b[0]);
    if (cells.length > most) cells.pop();
  }
  const means = Array.from(sums, (sum, key) => [key, sum / counts[key]]).filter(([key]) => counts[key]);
  means.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return (known[name] = { cells, means: means.slice(0, most) });
}
