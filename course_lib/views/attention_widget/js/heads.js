// All heads small, layers below each other: hover to look, click to choose, double-click for this head alone.

function thumbSize(view) {
  const { L, H } = view.data;
  const across = headsAcross(view);
  const narrow = view.width < 560; // above the picture then, and small, so as not to push it off the screen
  const room = narrow ? view.width : Math.min(view.width * 0.38, 440);
  return clamp(Math.floor((room - (L > 1 ? 20 : 0)) / across) - 5, 14, narrow ? 36 : L * H > 16 ? 56 : 72);
}
const headsAcross = ({ data: { L, H } }) => (L > 1 || H <= 3 ? H : H <= 8 ? Math.ceil(H / 2) : 4);

function buildHeads(view) {
  const { data, doc } = view;
  const size = thumbSize(view);
  const key = [data.L, data.H, size].join();
  if (view.heads?.key === key) return;
  const panel = make(doc, "div", "attention-heads", { role: "radiogroup", "aria-label": "Heads, layers as rows" });
  panel.style.gridTemplateColumns = `${data.L > 1 ? "auto " : ""}repeat(${headsAcross(view)}, ${size + 4}px)`;
  if (data.L > 1 && data.H > 1) {
    panel.append(make(doc, "span", "attention-count", { "aria-hidden": "true" }));
    for (let h = 0; h < data.H; h++) panel.append(make(doc, "span", "attention-count", { "aria-hidden": "true" }, String(h)));
  }
  const buttons = [];
  for (let n = 0; n < data.L * data.H; n++) {
    const [layer, head] = [Math.floor(n / data.H), n % data.H];
    if (data.L > 1 && head === 0) panel.append(make(doc, "span", "attention-count", { "aria-hidden": "true" }, String(layer)));
    const canvas = make(doc, "canvas");
    [canvas.style.width, canvas.style.height] = [`${size}px`, `${size}px`];
    const button = make(doc, "button", "attention-thumb", { type: "button", role: "radio", "data-lm-suppress-shortcuts": "true" }, canvas);
    button.addEventListener("pointerenter", () => timed(view, "hover head", () => preview(view, { layer, head })));
    button.addEventListener("pointerleave", () => timed(view, "hover head", () => preview(view, null)));
    button.addEventListener("click", () => timed(view, "head", () => choose(view, { layer, head })));
    button.addEventListener("dblclick", () => timed(view, "solo", () => choose(view, { layer, head, solo: true })));
    buttons.push(button);
    panel.append(button);
  }
  panel.addEventListener("keydown", (event) => headKeys(view, event));
  view.parts.heads.replaceChildren(
    panel,
    make(doc, "p", "attention-hint", {}, `${data.L > 1 && data.H > 1 ? "a row is a layer, a column a head \u00b7 " : ""}hover: look \u00b7 click: choose \u00b7 double-click: alone`),
  );
  view.parts.heads.style.width = `${Math.max(headsAcross(view) * (size + 5) + (data.L > 1 ? 20 : 0), 96)}px`;
  view.heads = { key, buttons, size };
  view.headsToo = true; // all are still empty
}

function preview(view, head) {
  if (head && !view.data.has(head.layer)) return;
  view.preview = head;
  invalidate(view, "base");
}

function headKeys(view, event) {
  const { L, H } = view.data;
  const across = L > 1 ? H : headsAcross(view);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
  let n = view.model.get("layer") * H + view.model.get("head");
  if (step) n = modulo(n + step, L * H);
  else if (event.key === "Home") n = 0;
  else if (event.key === "End") n = L * H - 1;
  else return;
  event.preventDefault();
  timed(view, "head", () => choose(view, { layer: Math.floor(n / H), head: n % H }));
  view.heads.buttons[n].focus();
}

// Marks the chosen head; a change of the choice draws nothing anew here.
function markHeads(view) {
  const { L, H } = view.data;
  const chosen = view.model.get("layer") * H + view.model.get("head");
  view.heads.buttons.forEach((button, n) => {
    const [layer, head] = [Math.floor(n / H), n % H];
    const off = view.data.switchedOff.has(n);
    const name = `${L > 1 ? `layer ${layer}, ` : ""}head ${head}${off ? ", switched off" : ""}`;
    if (button.getAttribute("aria-label") !== name) button.setAttribute("aria-label", name);
    if (button.getAttribute("aria-checked") !== String(n === chosen)) button.setAttribute("aria-checked", n === chosen);
    button.tabIndex = n === chosen ? 0 : -1;
    button.classList.toggle("attention-off", off);
  });
}

// Draws the small pictures, a few at a time, so that 144 heads do not stop the page.
function paintHeads(view) {
  const queue = view.heads.buttons.map((_, n) => n);
  const { H } = view.data;
  const chosen = view.model.get("layer");
  queue.sort((a, b) => Math.abs(Math.floor(a / H) - chosen) - Math.abs(Math.floor(b / H) - chosen) || a - b);
  const job = (view.headsJob = {});
  const some = () => {
    if (view.headsJob !== job || view.gone) return;
    const end = view.win.performance.now() + 7;
    while (queue.length && view.win.performance.now() < end) paintHead(view, queue.shift());
    if (queue.length) view.win.requestAnimationFrame(some);
    else view.root.dataset.heads = "drawn";
  };
  delete view.root.dataset.heads;
  view.win.requestAnimationFrame(some);
}

function paintHead(view, n) {
  const { data, model } = view;
  const canvas = view.heads.buttons[n].firstChild;
  const { size } = view.heads;
  const [layer, head] = [Math.floor(n / data.H), n % data.H];
  const surface = sized(view, canvas, size, size);
  const ratio = data.K / data.Q;
  const [width, height] = ratio > 1 ? [size, size / ratio] : [size * ratio, size];
  const [x, y] = [(size - width) / 2, (size - height) / 2];
  hatch(view, surface, view.theme, x, y, width, height);
  if (!data.has(layer)) {
    return write(surface, "\u2026", size / 2, size / 2, { align: "center", colour: view.theme.muted, font: view.theme.font });
  }
  const { values } = data.matrix(layer, head, model.get("stage"));
  const dense = Math.ceil(size * (view.win.devicePixelRatio || 1));
  const scale = scaleFor(view, layer, head);
  surface.imageSmoothingEnabled = false;
  surface.drawImage(bitmap(view, values, scale, data.Q, data.K, model.get("hide_first") ? 1 : 0, dense), x, y, width, height);
}
