// The drawing: the stream runs from left to right; attention and MLP branch off, and come back with a plus sign.

const ROAD = { top: 20, box: 88, norm: 126, road: 168, strip: 56, size: 205, stops: 218, stop: 18, end: 76, bottom: 276 };
const STRIP = 14; // pixels, the width of a strip

// Where everything stands: {stations: [{x, width, kind, block, place}], width, …}, in pixels.
function planRoad(view) {
  const { plan } = view;
  const kinds = plan.mlp ? ["attention", "mlp"] : ["attention"];
  const least = plan.norm === "post" ? 112 : 66;
  const many = plan.layers * kinds.length;
  const width = clamp(Math.floor((view.roadWidth - 66 - ROAD.end) / Math.max(1, many)), least, 200);
  const start = clamp(view.roadWidth - ROAD.end - many * width, 66, 104);
  const stations = [];
  for (let block = 0; block < plan.layers; block++) {
    kinds.forEach((kind) => stations.push({ kind, block, width, x: start + stations.length * width, place: stations.length + 1 }));
  }
  const end = start + stations.length * width;
  return { stations, start, end, width: end + ROAD.end, each: width, perBlock: kinds.length };
}

const partNamed = (view, name) => view.plan.parts.find((part) => part.name === name);
const labelOf = ({ kind, block, name }) => {
  const words = { token: "token table", position: "positions", attention: "attention", mlp: "MLP", norm: "norm", head: "head" }[kind];
  if (kind === "norm") return block === null ? "final norm" : `block ${block}, norm ${name.includes("mlp") ? "of the MLP" : "of attention"}`;
  return block === null ? words : `block ${block}, ${words}`;
};
const placeLabel = (place) => (place === "embedding" ? "the embedding" : place.replace(/^blocks\.(\d+)\.(.*)$/, (_, n, kind) => `block ${n}, ${kind === "mlp" ? "MLP" : kind}`));

// Builds the elements of the drawing, once for a size.
function buildRoad(view) {
  const { doc, plan, parts } = view;
  const road = (view.road = planRoad(view));
  const inner = parts.inner;
  inner.style.width = `${road.width}px`;
  parts.main.style.setProperty("--model-road-width", `${road.width}px`);
  inner.style.height = `${ROAD.bottom}px`;
  parts.lines = make(doc, "canvas", "model-lines", { "aria-hidden": "true" });
  view.buttons = [];
  const at = (element, x, y, width, height) => {
    Object.assign(element.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    return element;
  };
  const partButton = (name, text, x, y, width, height, ...children) => {
    const part = partNamed(view, name);
    const made = make(doc, "button", `model-part model-${part.kind}`, { type: "button", "aria-label": labelOf(part), "data-part": name, "data-lm-suppress-shortcuts": "true" }, make(doc, "span", "", {}, text), ...children);
    made.addEventListener("click", (event) => timed(view, "part", () => openPart(view, name, event.target.dataset?.head)));
    view.buttons.push(made);
    return at(made, x, y, width, height);
  };
  const drawn = [parts.lines];
  const stops = (place, x, width) => {
    const list = make(doc, "ol", "model-stops", { "aria-label": `If the model stopped after ${placeLabel(view.record.places[place])}` });
    const strip = make(doc, "canvas", "model-strip", { "aria-hidden": "true" });
    const size = make(doc, "span", "model-size");
    const rows = [0, 1, 2].map(() => {
      const [bar, token, value] = [make(doc, "i"), make(doc, "bdi"), make(doc, "span")];
      list.append(make(doc, "li", "", {}, bar, token, value));
      return { bar, token, value, row: list.lastChild };
    });
    at(list, x + 3, ROAD.stops, width - 6, 3 * ROAD.stop);
    at(size, x, ROAD.size - 8, width - 2, 15);
    at(strip, x + width - STRIP - 4, ROAD.road - ROAD.strip / 2, STRIP, ROAD.strip);
    drawn.push(list, size, strip);
    return { list, strip, size, rows };
  };

  const learned = plan.parts.some(({ kind }) => kind === "position");
  const tall = learned ? (ROAD.box - 22) / 2 : ROAD.box;
  drawn.push(partButton("token", learned ? "tokens" : "token table", 2, ROAD.top, road.start - 8, tall));
  if (learned) {
    drawn.push(partButton("position", "positions", 2, ROAD.top + ROAD.box - tall, road.start - 8, tall));
  }
  view.stops = [stops(0, 0, road.start)];
  view.small = [];
  for (const station of road.stations) {
    const { x, width, kind, block, place } = station;
    const name = `blocks.${block}.${kind}`;
    const canvas = make(doc, "canvas", "", { "aria-hidden": "true" });
    const norm = partNamed(view, `${name}.norm`);
    const normAt = plan.norm === "post" ? [x + width - 62, ROAD.road - 9] : [x + 3, ROAD.norm - 9];
    const box = () => drawn.push(partButton(name, kind === "mlp" ? "MLP" : "attention", x + 3, ROAD.top, width - 7, ROAD.box, canvas));
    const chip = () => norm && drawn.push(partButton(norm.name, "norm", ...normAt, 35, 18));
    (plan.norm === "post" ? [box, chip] : [chip, box]).forEach((add) => add());
    view.small.push({ canvas, station, button: view.buttons.find((b) => b.dataset.part === name) });
    view.stops[place] = stops(place, x, width);
  }
  if (partNamed(view, "norm")) drawn.push(partButton("norm", "norm", road.end + 4, ROAD.norm - 9, 35, 18));
  drawn.push(partButton("head", "head", road.end + 4, ROAD.top, 54, ROAD.box));
  for (let block = 0; block < plan.layers; block++) {
    drawn.push(at(make(doc, "span", "model-block", { "aria-hidden": "true" }, `block ${block}`), road.start + block * road.each * road.perBlock + 10, 0, 60, 16));
  }
  inner.replaceChildren(...drawn);
}

// Draws what has changed: lines, strips, small heads, hidden units, and what would come next.
function paintRoad(view) {
  const { record, road, plan, theme, focus } = view;
  const vectors = Array.from({ length: record.S }, (_, place) => record.vector(place, focus));
  const sizes = vectors.map(sizeOf);
  const strongest = vectors.map((vector) => vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  view.most = Math.max(...strongest) || 1; // the end of the colours, the same for all strips
  const best = record.following(focus, 1)[0].id;
  view.stops.forEach(({ strip, size, rows, list }, place) => {
    paintStrip(view, strip, vectors[place], view.most, STRIP, ROAD.strip, true);
    size.textContent = `size ${sizes[place].toFixed(sizes[place] < 10 ? 1 : 0)}`;
    record.stop(place, focus).forEach(({ id, token, chance }, n) => {
      const { bar, token: name, value, row } = rows[n];
      bar.style.width = `${100 * chance}%`;
      name.textContent = token;
      value.textContent = percent(chance);
      row.classList.toggle("model-answer", id === best);
    });
    rows.slice(record.stop(place, focus).length).forEach(({ row }) => (row.hidden = true));
    list.dataset.best = record.stop(place, focus)[0].token;
  });
  paintLines(view, sizes);
  for (const { canvas, station } of view.small) {
    if (station.kind === "attention") paintSmallHeads(view, canvas, station);
    else paintUnits(view, canvas, station);
  }
  view.buttons.forEach((button) => {
    const part = partNamed(view, button.dataset.part);
    const off = switchesOf(view, part).filter((name) => view.off.has(name)).length;
    const whole = off > 0 && off === switchesOf(view, part).length;
    button.classList.toggle("model-off", whole);
    const note = whole ? ", switched off" : off ? `, ${count(off, "head")} switched off` : "";
    button.setAttribute("aria-label", labelOf(part) + note);
    button.setAttribute("aria-expanded", view.model.get("part") === part.name);
  });
  view.root.classList.toggle("model-postnorm", plan.norm === "post");
  return theme;
}
const percent = (chance) => (chance >= 0.995 ? "100" : chance < 0.005 ? "0" : `${Math.round(100 * chance)}`) + "%";

// The names under which a part can be switched off: a head each for attention.
function switchesOf(view, { name, kind }) {
  return kind === "attention" ? view.plan.switches.filter((other) => other.startsWith(`${name}.head.`)) : view.plan.switches.includes(name) ? [name] : [];
}

function paintLines(view, sizes) {
  const { road, plan, theme } = view;
  const surface = sized(view, view.parts.lines, road.width, ROAD.bottom);
  const y = ROAD.road;
  const largest = Math.max(...sizes) || 1;
  const thick = (place) => 3 + (10 * sizes[place]) / largest;
  const line = (colour, width, ...points) => {
    surface.strokeStyle = colour;
    surface.lineWidth = width;
    surface.beginPath();
    points.forEach(([px, py], n) => (n ? surface.lineTo(px, py) : surface.moveTo(px, py)));
    surface.stroke();
  };
  const tip = (x, at, dx, dy) => {
    surface.fillStyle = theme.muted;
    surface.beginPath();
    surface.moveTo(x, at);
    surface.lineTo(x - 7 * dx - 4 * dy, at - 7 * dy - 4 * dx);
    surface.lineTo(x - 7 * dx + 4 * dy, at - 7 * dy + 4 * dx);
    surface.fill();
  };
  const plus = (x, at, r = 8) => {
    surface.fillStyle = theme.back;
    surface.beginPath();
    surface.arc(x, at, r, 0, 7);
    surface.fill();
    surface.strokeStyle = theme.ink;
    surface.lineWidth = 1.4;
    surface.stroke();
    line(theme.ink, 1.4, [x - r / 2, at], [x + r / 2, at]);
    line(theme.ink, 1.4, [x, at - r / 2], [x, at + r / 2]);
  };
  surface.lineJoin = "round";
  surface.strokeStyle = theme.line;
  surface.setLineDash([4, 3]);
  surface.lineWidth = 1;
  for (let block = 0; block < plan.layers; block++) {
    const wide = road.each * road.perBlock;
    surface.beginPath();
    surface.roundRect(road.start + block * wide - 0.5, 8.5, wide - 1, ROAD.size - 13, 9);
    surface.stroke();
  }
  surface.setLineDash([]);
  line(theme.muted, 1.4, [20, ROAD.top + ROAD.box], [20, y]);
  line(theme.road, thick(0), [20 - 0.7, y], [road.start, y]);
  if (plan.parts.some(({ kind }) => kind === "position")) plus(road.start / 2 - 2, ROAD.top + ROAD.box / 2, 7);
  for (const { x, width, place, kind, block } of road.stations) {
    const [out, back] = [x + 20, x + width - (plan.norm === "post" ? 72 : 28)];
    if (plan.residual) line(theme.road, thick(place - 1), [x - 1, y], [back, y]);
    else line(theme.road, thick(place - 1), [x - 1, y], [out, y]);
    line(theme.road, thick(place), [back, y], [x + width, y]);
    const silent = switchesOf(view, partNamed(view, `blocks.${block}.${kind}`)).every((name) => view.off.has(name));
    surface.globalAlpha = silent ? 0.35 : 1;
    line(theme.muted, 1.4, [out, y], [out, ROAD.top + ROAD.box]);
    tip(out, ROAD.top + ROAD.box, 0, -1);
    line(theme.muted, 1.4, [back, ROAD.top + ROAD.box], [back, y - 8]);
    tip(back, y - (plan.residual ? 8 : 3), 0, 1);
    surface.globalAlpha = 1;
    if (plan.residual) plus(back, y);
  }
  const last = sizes.length - 1;
  line(theme.road, thick(last), [road.end - 1, y], [road.end + 21.7, y]);
  line(theme.muted, 1.4, [road.end + 21, y], [road.end + 21, ROAD.top + ROAD.box]);
  tip(road.end + 21, ROAD.top + ROAD.box, 0, -1);
  line(theme.muted, 1.4, [road.end + 58, ROAD.top + ROAD.box / 2], [road.end + 74, ROAD.top + ROAD.box / 2]);
  tip(road.end + 76, ROAD.top + ROAD.box / 2, 1, 0);
}

// One head as an image, made once for a run.
function smallHead(view, block, h, size, scale) {
  const { record, win } = view;
  if (record.painted?.palette !== view.theme.palette) record.painted = { palette: view.theme.palette };
  const dense = Math.ceil(size * (win.devicePixelRatio || 1));
  return (record.painted[`${block} ${h} ${dense}`] ??= bitmap(view, record.matrices.matrix(block, h).values, scale, record.T, record.T, 0, dense));
}

// All heads of a block in its box, with the row of the focused token marked.
function paintSmallHeads(view, canvas, { width, block }) {
  const { heads: H } = view.plan;
  const [wide, tall] = [width - 15, ROAD.box - 24];
  const across = H <= 2 ? H : Math.ceil(Math.sqrt((H * wide) / tall));
  const down = Math.ceil(H / across);
  const size = Math.floor(Math.min((wide - 3 * (across - 1)) / across, (tall - 3 * (down - 1)) / down));
  const surface = sized(view, canvas, wide, tall);
  const left = (wide - across * size - 3 * (across - 1)) / 2;
  const scale = colourScale(view.theme.palette, 0, 1, { root: true });
  const opened = view.model.get("part") === `blocks.${block}.attention` ? view.model.get("head") : -1;
  surface.imageSmoothingEnabled = false;
  view.small[view.small.findIndex((small) => small.canvas === canvas)].places = [];
  for (let h = 0; h < H; h++) {
    const [x, y] = [left + (h % across) * (size + 3), Math.floor(h / across) * (size + 3)];
    surface.globalAlpha = view.off.has(`blocks.${block}.attention.head.${h}`) ? 0.2 : 1;
    surface.drawImage(smallHead(view, block, h, size, scale), x, y, size, size);
    surface.globalAlpha = 1;
    surface.lineWidth = 1;
    surface.strokeStyle = h === opened ? view.theme.accent : view.theme.line;
    surface.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    const row = Math.max(2.5, size / view.record.T);
    surface.strokeStyle = view.theme.accent;
    surface.strokeRect(x + 0.5, y + Math.min(size - row, (view.focus * size) / view.record.T) + 0.5, size - 1, row - 1);
    view.small.find((small) => small.canvas === canvas).places.push([x, y, size]);
  }
}

// The strongest hidden units as bars from the middle: to the left below 0.
function paintUnits(view, canvas, { width, block }) {
  const [wide, tall] = [width - 15, ROAD.box - 24];
  const surface = sized(view, canvas, wide, tall);
  const { top } = view.record.strongest(block, view.focus);
  const most = Math.max(...view.record.units.map(Math.abs)) || 1;
  const step = tall / top.length;
  const negative = top.some(([, value]) => value < -0.02 * most);
  const middle = negative ? wide * 0.25 : 0;
  surface.globalAlpha = view.off.has(`blocks.${block}.mlp`) ? 0.25 : 1;
  top.forEach(([, value], n) => {
    const long = (Math.abs(value) / most) * (value < 0 ? middle : wide - middle);
    surface.fillStyle = value < 0 ? view.theme.second : view.theme.accent;
    surface.fillRect(value < 0 ? middle - long : middle, n * step + 1, Math.max(long, 0.5), step - 2);
  });
  surface.globalAlpha = 1;
  surface.fillStyle = view.theme.muted;
  surface.fillRect(middle, 0, 1, tall);
}
