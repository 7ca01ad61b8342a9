// Colours of values. Cividis for weights and blue–white–orange around 0 for scores: both keep their order for readers
// with any kind of colour blindness, and are those of the course's still pictures.

const STOPS = {
  sequential: "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838",
  diverging: "083f784f97cff4f2ece08a2e7a3a00",
};

function ramp(stops) {
  const rgb = stops.match(/../g).map((pair) => parseInt(pair, 16));
  const last = rgb.length / 3 - 1;
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * last;
    const from = Math.min(last - 1, Math.floor(at));
    return [0, 1, 2].map((c) => Math.round(rgb[from * 3 + c] + (at - from) * (rgb[from * 3 + 3 + c] - rgb[from * 3 + c])));
  });
}
const RAMPS = { sequential: ramp(STOPS.sequential), diverging: ramp(STOPS.diverging) };
// As the pixels of an ImageData: alpha, blue, green, red from the highest byte on.
const PIXELS = Object.fromEntries(
  Object.entries(RAMPS).map(([name, table]) => [
    name,
    Uint32Array.from(table, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0),
  ]),
);
const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const inkOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b < 140 ? "#ffffff" : "#15181d");

const SMALLEST = 1e-4; // the lower end of the logarithmic scale, as a part of the upper end

// From a value to its place 0 … 1 on the colour bar. {low, high, log, ramp, place(value), ticks}
function colourScale(low, high, log) {
  if (!(high > low)) high = low + 1;
  if (log) {
    low = high * SMALLEST;
    const span = Math.log(high / low);
    const place = (value) => (value <= low ? 0 : clamp(Math.log(value / low) / span, 0, 1));
    const ticks = [1, 0.1, 0.01, 0.001, 0.0001].map((part) => part * high);
    return { low, high, log, ramp: "sequential", place, ticks };
  }
  const diverging = low < 0 && high > 0;
  if (diverging) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
  const place = (value) => clamp((value - low) / (high - low), 0, 1);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (high - low));
  return { low, high, log, ramp: diverging ? "diverging" : "sequential", place, ticks };
}
const colourOf = (scale, value) => RAMPS[scale.ramp][Math.round(scale.place(value) * 255)];
const tickText = (value) => tidy(String(+value.toPrecision(3)));
