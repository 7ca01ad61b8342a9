// What both pictures share: which head is shown, how its values become colours, labels, the colour bar.

const shownHead = (view) => view.preview ?? { layer: view.model.get("layer"), head: view.model.get("head") };

// The row and column in focus: under the pointer or the keys, else what is locked.
function selection(view) {
  const locked = { query: view.model.get("query"), key: view.model.get("key") };
  if (!view.point) return locked;
  return { query: view.point.query, key: view.point.key };
}

function currentMatrix(view) {
  const { layer, head } = shownHead(view);
  return view.data.matrix(layer, head, view.model.get("stage"));
}

function scaleFor(view, layer, head) {
  const { data, model } = view;
  const stage = model.get("stage");
  const fixed = stage === "weights" ? data.limits : data.stages.limits[stage];
  const { palette } = view.theme;
  const kind = { log: model.get("log_scale") && canLog(view), root: data.proper && stage === "weights" };
  if (!model.get("per_head")) return colourScale(palette, ...fixed, kind);
  const known = data.matrix(layer, head, stage);
  const [low, high] = model.get("hide_first") ? (known.shown ??= rangeOf(known.values, data.K, 1)) : known.range;
  return colourScale(palette, kind.root ? 0 : low, high, kind);
}
const canLog = (view) => view.model.get("stage") === "weights" && view.data.limits[0] >= 0;

const LABEL = 12; // pixels
const short = (text, most = 14) => {
  const signs = [...text];
  return signs.length <= most ? text : signs.slice(0, most - 1).join("") + "\u2026";
};

// The widths of all labels, measured once.
function measuredLabels(view) {
  const most = view.width < 420 ? 8 : 14;
  if (view.labels?.of === view.data && view.labels.most === most) return view.labels;
  const ink = make(view.doc, "canvas").getContext("2d");
  ink.font = `${LABEL}px ${view.theme.font}`;
  const widest = (texts) => texts.reduce((most, text) => Math.max(most, ink.measureText(text).width), 0);
  const [queries, keys] = [view.data.queries, view.data.keys].map((texts) => texts.map((text) => short(text, most)));
  const [left, top] = [Math.ceil(widest(queries)), Math.ceil(widest(keys))];
  view.labels = { of: view.data, most, queries, keys, left, top };
  return view.labels;
}

function write(surface, text, x, y, { align = "left", colour, size = LABEL, bold = false, font, angle = 0, back }) {
  surface.save();
  surface.font = `${bold ? "bold " : ""}${size}px ${font}`;
  surface.fillStyle = colour;
  surface.textAlign = align;
  surface.textBaseline = "middle";
  surface.direction = "ltr";
  surface.translate(x, y);
  if (angle) surface.rotate(angle);
  if (back) {
    surface.fillStyle = back; // over the same label in ordinary type
    surface.fillRect(-1, -size / 2 - 1, text.length * size * 0.62 + 4, size + 2);
    surface.fillStyle = colour;
  }
  surface.fillText(text, 0, 0);
  surface.restore();
}

// A bar with numbers; "≤" or "≥" at an end beyond which there are values.
function drawBar(view, surface, scale, { x, y, width, height }) {
  const { theme, data } = view;
  const steps = 64;
  for (let n = 0; n < steps; n++) {
    surface.fillStyle = css(scale.table[Math.round(((n + 0.5) / steps) * 255)]);
    surface.fillRect(x, y + height - ((n + 1) * height) / steps, width, height / steps + 0.5);
  }
  surface.strokeStyle = theme.line;
  surface.lineWidth = 1;
  surface.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  const beyond = view.model.get("stage") === "weights" && !view.model.get("per_head") ? data.outside : [false, false];
  const ticks = height < 90 ? [scale.ticks[0], scale.ticks.at(-1)] : scale.ticks;
  for (const value of ticks) {
    const at = y + height - scale.place(value) * height;
    surface.fillStyle = theme.muted;
    surface.fillRect(x + width, at - 0.5, 4, 1);
    const low = value === scale.low && (beyond[0] || scale.log);
    const sign = low ? "\u2264 " : value === scale.high && beyond[1] ? "\u2265 " : "";
    write(surface, sign + tickText(value), x + width + 7, at, { colour: theme.ink, size: 11, font: theme.font });
  }
}

// A triangle at the value in focus.
function markBar(view, surface, scale, { x, y, height }, value) {
  const at = y + height - scale.place(value) * height;
  surface.fillStyle = view.theme.accent;
  surface.beginPath();
  surface.moveTo(x - 1, at);
  surface.lineTo(x - 8, at - 5);
  surface.lineTo(x - 8, at + 5);
  surface.fill();
}

function drawBarredKey(view, surface, x, y) {
  const { theme, data, model } = view;
  if (data.bits && model.get("stage") !== "dot") {
    hatch(view, surface, theme, x, y - 6, 12, 12);
    write(surface, "not allowed", x + 18, y, { colour: theme.muted, size: 11, font: theme.font });
    x += 100;
  }
  if (model.get("hide_first")) {
    surface.strokeStyle = theme.muted;
    surface.lineWidth = 1;
    surface.strokeRect(x + 0.5, y - 5.5, 11, 11);
    write(surface, "first key, hidden", x + 18, y, { colour: theme.muted, size: 11, font: theme.font });
  }
}
