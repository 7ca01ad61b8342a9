// The attention view in the browser: plain JavaScript without imports. These files are joined into one ES module by
// assets.py, in the order given there, and share one scope. Tokens reach the page through textContent and fillText
// only, so that a token can never become markup.

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const modulo = (n, count) => ((n % count) + count) % count;

// An element with a class, attributes and children; a text becomes a text node.
function make(doc, tag, name = "", attributes = {}, ...children) {
  const element = doc.createElement(tag);
  if (name) element.className = name;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Bytes from the kernel (DataView), from a page (ArrayBuffer) or typed; a copy where another host did not align them.
function bytesOf(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}
const aligned = (bytes, size) => (bytes.byteOffset % size ? bytes.slice() : bytes);
function floatsOf(value) {
  const bytes = aligned(bytesOf(value), 4);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
function wordsOf(value) {
  const bytes = aligned(bytesOf(value), 2);
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
}

// The shortest decimal number that is this float32; for a value known to 1e-4 four decimals.
function exactText(value) {
  if (!Number.isFinite(value)) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    if (Math.fround(+value.toPrecision(digits)) === Math.fround(value)) return tidy(value.toPrecision(digits));
  }
  return tidy(value.toPrecision(9));
}
const tidy = (text) => (text.includes("e") ? String(+text) : text).replace("-", "\u2212");
const decimals = (value, count = 3) => (Object.is(+value.toFixed(count), -0) ? 0 : value).toFixed(count).replace("-", "\u2212");
const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const quote = (token) => `\u201c${token}\u201d`;

// Runs `work` and keeps how long it took, the last 400 times, for whoever wants to measure.
function timed(view, name, work) {
  const start = view.win.performance.now();
  const result = work();
  view.root.timings ??= [];
  view.root.timings.push([name, view.win.performance.now() - start]);
  if (view.root.timings.length > 400) view.root.timings.shift();
  return result;
}
