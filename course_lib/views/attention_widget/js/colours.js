// Colours of values. Zero has the colour of the page, in the light theme as in the dark one, so that ink means weight:
// blue for weights, blue and orange around 0 for scores. Readers with any kind of colour blindness see the same order.

const STOPS = {
  light: { sequential: "d3e4f38bbfe03f8ec40f5a9c072f66", below: "4f97cf083f78", above: "e08a2e7a3a00" },
  dark: { sequential: "173a5e1f63963f97cf8cc8f0e4f3ff", below: "3586c0a8dcff", above: "c4701fffd0a0" },
};
const hexes = (stops) => stops.match(/../g).map((pair) => parseInt(pair, 16));

function ramp(rgb) {
  const last = rgb.length / 3 - 1;
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * last;
    const from = Math.min(last - 1, Math.floor(at));
    return [0, 1, 2].map((c) => Math.round(rgb[from * 3 + c] + (at - from) * (rgb[from * 3 + 3 + c] - rgb[from * 3 + c])));
  });
}

// The colours of a theme: {sequential, diverging}, each {table: 256 colours, pixels: the same for an ImageData}.
function paletteOn(paper) {
  const stops = STOPS[brightness(paper) < 0.2 ? "dark" : "light"];
  const below = hexes(stops.below);
  const tables = {
    sequential: ramp([...paper, ...hexes(stops.sequential)]),
    diverging: ramp([...below.slice(3), ...below.slice(0, 3), ...paper, ...hexes(stops.above)]),
  };
  // As the pixels of an ImageData: alpha, blue, green, red from the highest byte on.
  const pixels = (table) => Uint32Array.from(table, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  return Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, { table, pixels: pixels(table) }]));
}

// Relative luminance, as WCAG defines it.
function brightness(rgb) {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
// White or black, whichever has more contrast: at least 4.58, where WCAG asks for 4.5.
const inkOn = (rgb) => ((brightness(rgb) + 0.05) ** 2 < 1.05 * 0.05 ? "#ffffff" : "#000000");

const SMALLEST = 1e-4; // the lower end of the logarithmic scale, as a part of the upper end

// From a value to its place 0 … 1 on the colour bar: {low, high, log, root, place(value), ticks, table, pixels}.
// `root`: places by the square root, for weights, most of which are small; their pattern would be lost otherwise.
function colourScale(palette, low, high, { log = false, root = false } = {}) {
  if (!(high > low)) high = low + 1;
  if (log) {
    low = high * SMALLEST;
    const span = Math.log(high / low);
    const place = (value) => (value <= low ? 0 : clamp(Math.log(value / low) / span, 0, 1));
    const ticks = [1, 0.1, 0.01, 0.001, 0.0001].map((part) => part * high);
    return { low, high, log, place, ticks, ...palette.sequential };
  }
  const signed = low < 0 && high > 0;
  if (signed) [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
  const part = (value) => clamp((value - low) / (high - low), 0, 1);
  const place = root ? (value) => Math.sqrt(part(value)) : part;
  const ticks = (root ? [0, 0.05, 0.25, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((n) => low + n * (high - low));
  return { low, high, log, root, signed, place, ticks, ...palette[signed ? "diverging" : "sequential"] };
}
const colourOf = (scale, value) => scale.table[Math.round(scale.place(value) * 255)];
const tickText = (value) => tidy(String(+value.toPrecision(3)));
