// The model view: a text, its tokens, the drawing with real numbers in it, and the part that is open.

const MODEL_KEYS = [
  ["\u2190 \u2192", "previous, next part (in the drawing) or token (in the text)"],
  ["Home, End", "first, last"],
  ["Enter", "open the part, or close it"],
  ["[  ]", "previous, next token"],
  ["x", "switch the part off, or on again"],
  ["n  b", "next token, one token back"],
  ["Escape", "close the part"],
];
const COMING = 186; // pixels of the list of next tokens

function buildModel(view) {
  const { doc, root, id, model } = view;
  const parts = (view.parts = { title: make(doc, "h3", "attention-title", {}, "A GPT at work") });
  const { alone } = model;
  view.recorded = (model.get("recorded") ?? []).map(({ text, content }) => ({ text, content: content ?? model.get("content") }));
  const suppress = { "data-lm-suppress-shortcuts": "true" };
  if (alone && view.recorded.length > 1) {
    parts.text = make(doc, "select", "model-text", { "aria-label": "Recorded text", ...suppress });
    view.recorded.forEach(({ text }, n) => parts.text.append(make(doc, "option", "", { value: n }, text.length > 46 ? `\u2026${text.slice(-45)}` : text)));
    parts.text.addEventListener("change", () => showRecorded(view, +parts.text.value));
  } else {
    parts.text = make(doc, "textarea", "model-text", { rows: 1, "aria-label": "Text", spellcheck: "false", ...suppress });
    parts.text.disabled = !!alone;
    parts.text.addEventListener("input", () => change(view, { text: parts.text.value }));
  }
  parts.step = button(view, "Next token", "draw the next token and append it (n)", () => askKernel(view, { kind: "step" }));
  parts.back = button(view, "Back", "take the last token away (b)", () => askKernel(view, { kind: "back" }));
  parts.slider = make(doc, "input", "", { type: "range", min: 0, max: 2, step: 0.1, "aria-label": "Temperature", ...suppress });
  parts.slider.addEventListener("input", () => timed(view, "temperature", () => choose(view, { temperature: +parts.slider.value })));
  parts.heat = make(doc, "output");
  const warm = make(doc, "label", "attention-choice", { title: "divides the logits of the next token; 0 takes the largest" }, "Temperature ", parts.slider, parts.heat);
  parts.reset = button(view, "As trained", "switch everything on, temperature 1", () => change(view, { off: [], temperature: 1 }));
  const typing = make(doc, "div", "model-typing", { role: "group", "aria-label": "Choices" }, parts.text, parts.step, parts.back, warm, parts.reset);
  parts.tokens = make(doc, "div", "model-tokens", { role: "radiogroup", "aria-label": "Token to follow" });
  parts.note = make(doc, "p", "attention-note", { role: "status" });
  parts.inner = make(doc, "div", "model-inner");
  parts.road = make(doc, "div", "model-road", { role: "group", "aria-label": "The model, from left to right", "aria-describedby": `model-help-${id}` }, parts.inner);
  parts.following = make(doc, "h4");
  const { next, items } = nextTokens(view, view.record.following(0, 1).length, (n) => askKernel(view, { kind: "append", token: view.following[n].id, after: view.focus }));
  view.nextItems = items;
  parts.coming = make(doc, "section", "model-coming", {}, parts.following, next, make(doc, "p", "attention-hint", {}, "click to append \u00b7 tick: as trained"));
  parts.opened = make(doc, "div", "model-opened", { role: "region", "aria-label": "The open part" });
  parts.inside = make(doc, "div", "model-inside");
  parts.live = make(doc, "div", "attention-unseen", { role: "status", "aria-live": "polite" });
  const help = make(doc, "div", "attention-unseen", { id: `model-help-${id}` }, "Arrow keys move from part to part, Enter opens one, x switches it off. The list \u201cKeys\u201d names all keys.");
  parts.main = make(doc, "div", "model-main", {}, parts.road, parts.coming);
  const tools = make(doc, "span", "attention-end", {}, keysHelp(view, MODEL_KEYS));
  root.append(make(doc, "div", "attention-header", {}, parts.title, parts.note, tools), typing, parts.tokens, parts.main, parts.opened, parts.inside, parts.live, help);
  parts.road.addEventListener("keydown", (event) => timed(view, "key", () => roadKeys(view, event)));
  parts.tokens.addEventListener("keydown", (event) => timed(view, "key", () => tokenKeys(view, event)));
  parts.opened.addEventListener("keydown", (event) => event.key === "Escape" && view.model.get("part") && closePart(view));
}

function askKernel(view, message) {
  if (!view.model.alone) {
    view.asked = view.win.performance.now();
    return view.model.send(message);
  }
  const here = recordedAt(view);
  if (message.kind === "append" && view.recorded[here + 1]?.content.tokens.at(-1) !== view.record.names[message.token]) return say(view, "not recorded on this page");
  const there = here + (message.kind === "back" ? -1 : 1);
  if (view.recorded[there]) showRecorded(view, there);
}

function showRecorded(view, n) {
  const { text, content } = view.recorded[n];
  view.model.set("focus", null);
  view.model.set("text", text);
  view.model.set("content", { ...content, version: view.record.version + 1 });
}

const recordedAt = ({ recorded, model }) => recorded.findIndex(({ text }) => text === model.get("text"));

// Brings the field to the text, with its end in sight.
function setText(view) {
  const { text } = view.parts;
  const wanted = text.tagName === "SELECT" ? String(recordedAt(view)) : view.model.get("text");
  if (text.value === wanted) return;
  text.value = wanted;
  text.scrollTop = text.scrollHeight;
}

function loadModel(view) {
  const { model, doc, parts } = view;
  const content = model.get("content");
  view.record = new Record(content, view.plan);
  if (parts) {
    view.chips = view.record.tokens.map((token, n) => {
      const chip = make(doc, "button", "model-chip", { type: "button", role: "radio", "data-lm-suppress-shortcuts": "true", "aria-label": `${token}, token ${n}` }, make(doc, "bdi", "", {}, short(token)));
      chip.addEventListener("click", () => timed(view, "token", () => follow(view, n)));
      return chip;
    });
    const focused = parts.tokens.contains(doc.activeElement);
    parts.tokens.replaceChildren(...view.chips);
    setFocus(view);
    if (focused) view.chips[view.focus].focus();
  }
}

function setFocus(view) {
  const last = view.record.T - 1;
  view.focus = Math.min(view.model.get("focus") ?? last, last);
}

// Follows another token through the model; the last one stays the last when the text grows.
function follow(view, n) {
  choose(view, { focus: n === view.record.T - 1 ? null : n });
}

function redraw(view) {
  if (!view.frame) view.frame = view.win.requestAnimationFrame(() => timed(view, "draw", () => drawModel(view)));
}

function drawModel(view) {
  view.frame = null;
  if (view.gone) return;
  if (!view.theme.back) view.theme = readTheme(view);
  if (!view.theme.back || view.width <= 0) return; // no styles, or no room yet: the page says when
  const { parts, model, record, root } = view;
  view.theme.road = view.win.getComputedStyle(root).getPropertyValue("--model-road").trim();
  setFocus(view);
  view.off = new Set(model.get("off"));
  const narrow = view.width < 640;
  root.dataset.columns = narrow ? 1 : 2;
  const roadWidth = narrow ? view.width : view.width - COMING - 14;
  if (roadWidth !== view.roadWidth || view.builtFor !== record.S) {
    Object.assign(view, { roadWidth, builtFor: record.S });
    buildRoad(view);
  }
  paintRoad(view);
  view.buttons.forEach((button, n) => (button.tabIndex = n === (view.current ?? 0) ? 0 : -1));
  view.chips.forEach((chip, n) => {
    chip.setAttribute("aria-checked", n === view.focus);
    chip.tabIndex = n === view.focus ? 0 : -1;
  });
  view.following = record.following(view.focus, model.get("temperature"));
  view.following.forEach((following, n) => setNext(view.nextItems[n], following));
  parts.following.textContent = `Next after ${quote(short(record.tokens[view.focus], 18))}`;
  setText(view);
  parts.slider.value = model.get("temperature");
  parts.heat.textContent = decimals(model.get("temperature"), 1);
  const here = recordedAt(view);
  parts.step.disabled = !!model.alone && !view.recorded[here + 1];
  parts.back.disabled = model.alone ? here < 1 : record.T < 2;
  parts.reset.disabled = !view.off.size && model.get("temperature") === 1;
  parts.note.textContent = record.note;
  if ((view.opened?.part?.name ?? "") !== model.get("part") || !view.opened) buildOpened(view);
  view.opened.update();
  const state = { focus: view.focus, part: model.get("part"), head: model.get("head"), off: [...view.off], version: record.version, tokens: record.T };
  root.dataset.state = JSON.stringify({ ...state, next: view.following[0].token });
  root.dataset.ready = "1";
  const said = `${quote(view.following[0].token)} ${decimals(view.following[0].now, 2)}`;
  if (view.said && view.said !== said) say(view, `next: ${said}`);
  view.said = said;
  if (view.asked && record.version !== view.drawn) {
    root.dataset.latency = (view.win.performance.now() - view.asked).toFixed(1);
    view.asked = null;
  }
  view.drawn = record.version;
  const shown = `${record.version} ${view.focus} ${view.width}`;
  if (shown !== view.shown) parts.tokens.scrollTop = view.chips[view.focus].offsetTop - parts.tokens.offsetTop - 27;
  view.shown = shown;
}

// Keys in the drawing: one part at a time has the focus.
function roadKeys(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const here = view.buttons.indexOf(view.doc.activeElement);
  const last = view.buttons.length - 1;
  const there = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: last }[event.key];
  const part = here >= 0 && partNamed(view, view.buttons[here].dataset.part);
  if (there !== undefined) {
    view.current = clamp(there, 0, last);
    view.buttons.forEach((button, n) => (button.tabIndex = n === view.current ? 0 : -1));
    view.buttons[view.current].focus();
  } else if (event.key === "x" && part && switchesOf(view, part).length && !view.model.alone) {
    const names = switchesOf(view, part);
    setOff(view, names, !names.every((name) => view.off.has(name)));
  } else if (event.key === "[" || event.key === "]") {
    follow(view, clamp(view.focus + (event.key === "]" ? 1 : -1), 0, view.record.T - 1));
  } else if (event.key === "n" || event.key === "b") {
    askKernel(view, { kind: event.key === "n" ? "step" : "back" });
  } else if (event.key === "Escape" && view.model.get("part")) closePart(view);
  else return;
  event.preventDefault();
}

function tokenKeys(view, event) {
  const last = view.record.T - 1;
  const there = { ArrowRight: view.focus + 1, ArrowDown: view.focus + 1, ArrowLeft: view.focus - 1, ArrowUp: view.focus - 1, Home: 0, End: last }[event.key];
  if (there === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  follow(view, clamp(there, 0, last));
  view.chips[clamp(there, 0, last)].focus();
}

function renderModel({ model, el }) {
  const doc = el.ownerDocument;
  const root = make(doc, "div", "attention-view model-view", { role: "group", "aria-label": "A GPT at work" });
  const view = { model, doc, root, win: doc.defaultView, id: Math.random().toString(36).slice(2, 9), ends: [], width: 0, off: new Set() };
  view.plan = model.get("plan");
  loadModel(view);
  buildModel(view);
  loadModel(view);
  el.append(root);
  view.theme = readTheme(view);
  // Keys end here, or JupyterLab would cut cells at "x"; what has Ctrl, Alt or the command key goes on.
  root.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab" || event.stopPropagation());
  listen(view, "text", () => setText(view)); // what the model makes of it comes later, and so it is with what is off
  for (const name of ["part", "head", "focus", "temperature"]) listen(view, name, () => redraw(view));
  listen(view, "part", () => say(view, model.get("part") ? `${labelOf(partNamed(view, model.get("part")))} is open` : "closed"));
  listen(view, "content", () => {
    timed(view, "load", () => loadModel(view));
    if (!view.asked) return redraw(view);
    view.win.cancelAnimationFrame(view.frame); // somebody types and waits: draw at once
    timed(view, "draw", () => drawModel(view));
  });
  // A click on a small head opens the attention with that head.
  root.addEventListener("pointerdown", (event) => {
    const small = view.small?.find(({ canvas }) => canvas === event.target);
    const h = small?.places?.findIndex(([x, y, size]) => event.offsetX >= x && event.offsetX < x + size && event.offsetY >= y && event.offsetY < y + size) ?? -1;
    if (small) h < 0 ? delete small.canvas.dataset.head : (small.canvas.dataset.head = h);
  });
  followPage(view, () => redraw(view), () => redraw(view));
  Object.assign(view, { width: Math.max(0, root.clientWidth - 32), height: visibleHeight(view) });
  timed(view, "first", () => drawModel(view));
  return () => {
    view.gone = true;
    closeAttention(view);
    view.ends.forEach((end) => end());
  };
}
