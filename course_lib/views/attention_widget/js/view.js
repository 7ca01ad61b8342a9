// The whole: builds the page's part, listens to the model, the pointer and the keys, and draws what has changed.

const NEEDS = { focus: 0, base: 1, all: 2 }; // how much has to be drawn again

function invalidate(view, what, heads = false) {
  view.needs = Math.max(view.needs ?? 0, NEEDS[what]);
  view.headsToo ||= heads;
  if (view.frame) return;
  view.frame = view.win.requestAnimationFrame(() => timed(view, "draw", () => draw(view)));
}

function draw(view) {
  view.frame = null;
  if (view.gone) return;
  if (!view.theme.back) view.theme = readTheme(view);
  if (!view.theme.back) return void (view.frame = view.win.requestAnimationFrame(() => draw(view))); // no styles yet
  const needs = view.needs ?? 0;
  view.needs = 0;
  const { parts, model } = view;
  const { layer, head } = shownHead(view);
  const missing = !view.data.has(layer);
  view.root.classList.toggle("attention-missing", missing);
  if (missing) return askLayer(view, layer);
  if (needs === NEEDS.all) arrange(view);
  const picture = pictureOf(view);
  if (needs >= NEEDS.base) {
    const [width, height] = view.layout.total;
    view.scale = picture.base(view, sized(view, parts.base, width, height));
    parts.caption.textContent = (view.preview ? "preview: " : "") + describe(view).text;
    parts.figure.setAttribute("aria-label", `${view.data.title || "Attention"}, ${describe(view).text}: ${count(view.data.Q, "query", "queries")} by ${count(view.data.K, "key")}`);
  }
  picture.focus(view, sized(view, parts.over, ...view.layout.total), view.scale);
  updateReading(view);
  updateCell(view);
  updateProducts(view);
  askExact(view);
  if (needs >= NEEDS.base) {
    setControls(view);
    if (view.heads) markHeads(view);
    setLab(view);
    setLearning(view);
  }
  if (view.headsToo && view.heads) paintHeads(view);
  view.headsToo = false;
  const { query, key } = selection(view);
  view.root.dataset.state = JSON.stringify({ layer, head, query, key, mode: model.get("mode"), stage: model.get("stage"), version: view.data.version });
  if (view.width > 0) view.root.dataset.ready = "1";
  if (view.asked && view.data.version !== view.drawn) {
    view.root.dataset.latency = (view.win.performance.now() - view.asked).toFixed(1);
    view.asked = null;
  }
  view.drawn = view.data.version;
}

const SIDE = 232; // pixels of the numbers beside the picture
const GAP = 20;

// Sizes of all parts, for the width and the height that there is: the whole view shall be seen at once. The numbers are
// beside the picture (three columns), below the small heads (two) or below the picture (one), wherever it is largest.
function arrange(view) {
  const { parts, model, data } = view;
  const solo = model.get("solo") || data.L * data.H === 1;
  parts.heads.hidden = solo;
  if (!solo) buildHeads(view);
  const heads = solo ? 0 : parseFloat(parts.heads.style.width) + GAP;
  const above = parts.main.getBoundingClientRect().top - view.root.getBoundingClientRect().top;
  const most = Math.max(model.get("solo") ? 620 : 300, visibleHeight(view) - above - 46);
  const tried = (columns, room) => ({ columns, room, layout: pictureOf(view).layout(view, Math.max(230, room), most) });
  const three = tried(3, view.width - heads - SIDE - GAP);
  const two = tried(2, view.width - Math.max(heads, solo ? 0 : SIDE + GAP));
  const [best, size] = three.layout.cell >= 0.85 * two.layout.cell ? [three, three.room] : [two, two.room];
  const chosen = view.width < 560 || size < 300 ? tried(1, view.width) : solo && best === two ? tried(1, view.width) : best;
  view.root.dataset.columns = chosen.columns;
  const left = Math.max(chosen.columns === 2 ? SIDE : 0, heads - GAP);
  parts.main.style.setProperty("--attention-left", `${left}px`);
  view.layout = view.root.layout = chosen.layout;
}

// The height of the part of the page that is seen: JupyterLab's pane, or the window.
function visibleHeight(view) {
  const pane = view.root.closest(".jp-WindowedPanel-outer");
  return pane?.clientHeight || view.win.innerHeight;
}

function askLayer(view, layer) {
  view.parts.caption.textContent = view.model.alone ? `layer ${layer} is not part of this page` : `layer ${layer} is loading`;
  if (view.askedLayer !== layer) view.model.send({ kind: "layer", version: view.data.version, layer });
  view.askedLayer = layer;
}

// Sets choices, here and in the kernel.
function choose(view, changes) {
  if ("layer" in changes || "head" in changes) view.preview = null;
  if ("query" in changes) view.point = null;
  for (const [name, value] of Object.entries(changes)) if (view.model.get(name) !== value) view.model.set(name, value);
  view.model.save_changes();
}

function listen(view, name, action) {
  view.model.on(`change:${name}`, action);
  view.ends.push(() => view.model.off(`change:${name}`, action));
}

function load(view) {
  view.data = new Matrices(view.model.get("content"));
  view.askedLayer = null;
  const { data, parts, point } = view;
  if (point && ((point.query ?? 0) >= data.Q || (point.key ?? 0) >= data.K)) view.point = null;
  parts.title.textContent = data.title || "Attention";
  parts.notes.textContent = data.notes.join(" ");
  buildControls(view);
  buildLab(view);
  buildLearning(view);
  if (data.learning) showFrame(view);
  invalidate(view, "all", true);
}

function pointer(view) {
  const { figure, over } = view.parts;
  const at = (event) => {
    const box = over.getBoundingClientRect();
    return view.layout ? pictureOf(view).hit(view, event.clientX - box.left, event.clientY - box.top) : null;
  };
  const move = (point) => {
    if (view.point?.query === point?.query && view.point?.key === point?.key && !view.point === !point) return;
    view.point = point;
    invalidate(view, "focus");
  };
  figure.addEventListener("pointermove", (event) => timed(view, "hover", () => move(at(event))));
  figure.addEventListener("pointerleave", () => timed(view, "hover", () => move(null)));
  figure.addEventListener("click", (event) =>
    timed(view, "click", () => {
      const point = at(event);
      const locked = { query: view.model.get("query"), key: view.model.get("key") };
      if (point) lock(view, point);
      else if (locked.query !== null || locked.key !== null) choose(view, { query: null, key: null });
    }),
  );
  figure.addEventListener("keydown", (event) => timed(view, "key", () => pictureKeys(view, event)));
  figure.addEventListener("blur", () => view.point?.byKeys && move(null));
}

function build(view) {
  const { doc, root, id } = view;
  const parts = { title: make(doc, "h3", "attention-title"), tools: make(doc, "span", "attention-end"), lab: make(doc, "div", "attention-lab") };
  parts.controls = make(doc, "div", "attention-controls", { role: "group", "aria-label": "Choices" });
  parts.heads = make(doc, "div", "attention-panel");
  parts.caption = make(doc, "p", "attention-caption", { "aria-hidden": "true" });
  [parts.base, parts.over] = [make(doc, "canvas", "", { "aria-hidden": "true" }), make(doc, "canvas", "attention-over", { "aria-hidden": "true" })];
  parts.cells = [0, 1].map((n) => make(doc, "span", "", { role: "gridcell", id: `attention-cell-${n}-${id}` }));
  const rows = parts.cells.map((cell) => make(doc, "span", "", { role: "row" }, cell));
  parts.figure = make(doc, "div", "attention-figure", { role: "grid", tabindex: 0, "aria-readonly": "true", "aria-describedby": `attention-help-${id}`, "data-lm-suppress-shortcuts": "true" }, parts.base, parts.over, make(doc, "div", "attention-unseen", {}, ...rows));
  parts.reading = make(doc, "div", "attention-reading");
  parts.products = make(doc, "section", "attention-products");
  parts.notes = make(doc, "p", "attention-note");
  parts.live = make(doc, "div", "attention-unseen", { role: "status", "aria-live": "polite" });
  const help = make(doc, "div", "attention-unseen", { id: `attention-help-${id}` }, "Arrow keys move from cell to cell, Enter locks one, Escape unlocks it. The list “Keys” names all keys.");
  const picture = make(doc, "div", "attention-picture", {}, parts.caption, parts.figure);
  const side = make(doc, "div", "attention-side", {}, parts.reading, parts.products);
  parts.main = make(doc, "div", "attention-main", {}, parts.heads, picture, side);
  root.append(make(doc, "div", "attention-header", {}, parts.title, parts.tools), parts.lab, parts.controls, parts.main, parts.notes, parts.live, help);
  view.parts = parts;
}

// Tells a view when the page has another theme, or has room for another size.
function followPage(view, restyled, resized) {
  const { win, doc, root } = view;
  const restyle = () => {
    view.theme = readTheme(view);
    restyled();
  };
  const themes = new win.MutationObserver(() => [0, 300].forEach((later) => win.setTimeout(restyle, later)));
  themes.observe(doc.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
  const dark = win.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", restyle);
  const measured = new win.ResizeObserver(() => {
    const [width, height] = [root.clientWidth - 32, visibleHeight(view)];
    if (width <= 0 || (Math.abs(width - view.width) < 2 && Math.abs(height - view.height) < 2)) return;
    Object.assign(view, { width, height });
    resized();
  });
  measured.observe(root);
  measured.observe(root.closest(".jp-WindowedPanel-outer") ?? doc.documentElement);
  view.ends.push(() => (themes.disconnect(), measured.disconnect(), dark.removeEventListener("change", restyle)));
}

function render({ model, el }) {
  const doc = el.ownerDocument;
  const id = Math.random().toString(36).slice(2, 9);
  const root = make(doc, "div", "attention-view", { role: "group", "aria-label": model.get("content").title || "Attention view" });
  const view = { model, doc, root, win: doc.defaultView, id, ends: [], point: null, preview: null };
  view.width = 0;
  build(view);
  buildReading(view);
  el.append(root);
  view.theme = readTheme(view);
  // Keys end here, or JupyterLab would cut cells at "x"; what has Ctrl, Alt or the command key goes on.
  root.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab" || event.stopPropagation());
  pointer(view);

  const heard = (names, what, heads) => names.forEach((name) => listen(view, name, () => invalidate(view, what, heads)));
  heard(["layer", "head"], "base", false);
  heard(["query", "key"], "focus", false);
  heard(["mode", "solo"], "all", false);
  heard(["stage", "log_scale", "hide_first", "per_head"], "base", true);
  for (const name of ["layer", "head", "mode", "stage"]) listen(view, name, () => say(view, describe(view).text));
  listen(view, "content", () => {
    timed(view, "load", () => load(view));
    if (!view.asked) return;
    view.win.cancelAnimationFrame(view.frame); // somebody types and waits: draw at once
    timed(view, "draw", () => draw(view));
  });

  const answered = (message, buffers) => {
    if (message.version !== view.data.version) return;
    if (message.kind === "layer") view.data.layers[message.layer] = wordsOf(buffers[0]);
    else view.data.correct(message, floatsOf(buffers[0]), floatsOf(buffers[1]));
    invalidate(view, message.kind === "layer" ? "all" : "focus", message.kind === "layer");
  };
  model.on("msg:custom", answered);

  followPage(view, () => invalidate(view, "all", true), () => invalidate(view, "all"));
  Object.assign(view, { width: Math.max(0, root.clientWidth - 32), height: visibleHeight(view) });
  load(view);
  if (view.width) {
    view.win.cancelAnimationFrame(view.frame);
    timed(view, "first", () => draw(view));
  }

  return () => {
    view.gone = true;
    view.ends.forEach((end) => end());
    model.off("msg:custom", answered);
  };
}
