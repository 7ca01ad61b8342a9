// The part that is open: what it is, what it did for the focused token, and a switch.

function openPart(view, name, head) {
  const change = view.model.get("part") === name && head === undefined ? { part: "" } : { part: name };
  if (head !== undefined) change.head = +head;
  choose(view, change);
}

// Builds the panel of the part that is open; updateOpened() fills in the numbers.
function buildOpened(view) {
  const { doc, parts, plan } = view;
  const part = partNamed(view, view.model.get("part"));
  closeAttention(view);
  view.opened = null;
  if (!part) {
    const help = make(doc, "p", "model-legend");
    parts.opened.replaceChildren(help);
    view.opened = { update: () => (help.textContent = legend(view)) };
    return;
  }
  const title = make(doc, "h4", "", { tabindex: "-1" }, capital(labelOf(part)));
  const facts = make(doc, "dl", "model-facts");
  const fact = (name, text) => facts.append(make(doc, "dt", "", {}, name), make(doc, "dd", "", {}, text));
  const shape = make(doc, "span");
  fact("shape", shape);
  const weights = weightsText(part.weights);
  fact("parameters", [part.count.toLocaleString("en"), weights, part.note].filter(Boolean).join(": "));
  fact("computed by", `${part.where[2]}, line ${part.where[1]} of ${part.where[0]}`);
  const switches = make(doc, "div", "attention-controls");
  const left = make(doc, "div", "model-about", {}, title, make(doc, "p", "", {}, part.says), facts, switches);
  const right = make(doc, "div", "model-numbers");
  const close = button(view, "Close", "close this part (Escape)", () => closePart(view));
  const buttons = make(doc, "div", "model-buttons", {}, close);
  parts.opened.replaceChildren(left, right, buttons);
  const updates = [() => (shape.textContent = part.shape.map((size) => `(${size.map((n) => (n === "T" ? view.record.T : n)).join(", ")})`).join(" \u2192 "))];
  updates.push(...switchesFor(view, part, switches));
  if (part.kind === "attention") updates.push(attentionNumbers(view, part, right, buttons));
  updates.push(vectorRows(view, part, right));
  if (part.kind === "mlp") updates.push(unitNumbers(view, part, right));
  if (part.kind === "head") updates.push(logitNumbers(view, right));
  view.opened = { part, update: () => updates.forEach((update) => update()) };
  return plan;
}
// Names and shapes; those of one shape share it: "query, key, value, output (96, 96) each".
function weightsText(weights) {
  const shapes = new Map();
  const only = weights.length > 1 && weights.every(([name]) => name.endsWith(".weight"));
  for (const [name, size] of weights) {
    const key = `(${size.join(", ")})`;
    shapes.set(key, [...(shapes.get(key) ?? []), only ? name.replace(".weight", "") : name]);
  }
  return [...shapes].map(([shape, names]) => `${names.join(", ")} ${shape}${names.length > 1 ? " each" : ""}`).join("; ");
}
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function legend({ record, focus }) {
  const followed = `The picture follows ${quote(record.tokens[focus])} (token ${focus}): the strips are its vector after each part, blue below 0 and orange above`;
  return `Click a part to open it. ${followed}; the road is as thick as this vector is large; the percentages say what would come next if the model stopped there.`;
}

function closePart(view) {
  const name = view.model.get("part");
  choose(view, { part: "" });
  view.buttons.find((button) => button.dataset.part === name)?.focus();
}

// Sets or clears names in the list of what is off.
function setOff(view, names, off) {
  const others = view.model.get("off").filter((name) => !names.includes(name));
  change(view, { off: off ? [...others, ...names] : others });
}

function switchesFor(view, part, box) {
  const { doc } = view;
  const add = (namesOf, textOf, title) => {
    const [input, text] = [make(doc, "input", "", { type: "checkbox", "data-lm-suppress-shortcuts": "true" }), make(doc, "span")];
    input.disabled = !!view.model.alone;
    input.addEventListener("change", () => setOff(view, namesOf(), input.checked));
    box.append(make(doc, "label", "attention-switch", { title: view.model.alone ? "needs a kernel" : title }, input, text));
    return () => {
      input.checked = namesOf().every((name) => view.off.has(name));
      text.textContent = textOf();
    };
  };
  const names = switchesOf(view, part);
  if (part.kind === "norm") return [add(() => names, () => "Switch its gain off", "each channel of the norm is then multiplied by 1")];
  if (part.kind === "mlp") return [add(() => names, () => "Switch this MLP off", "it adds 0 to the stream")];
  if (part.kind !== "attention") return [];
  const head = select(view, "Head", "head", view.plan.heads);
  box.append(head.label);
  const one = add(() => [names[view.model.get("head")]], () => `head ${view.model.get("head")} off`, "its context becomes 0");
  const all = add(() => names, () => "all off", "the block reads nothing");
  return [one, all, () => (head.list.value = view.model.get("head"))];
}

// Vectors as wide strips: what went in, what was added, what came out.
function vectorRows(view, part, box) {
  const { doc, plan } = view;
  const list = make(doc, "div", "model-vectors");
  box.append(list);
  return () => {
    const { record, focus } = view;
    const place = record.places.indexOf(part.name);
    const stream = (n) => record.vector(n, focus);
    const rows = [];
    if (place > 0) {
      const [before, after] = [stream(place - 1), stream(place)];
      rows.push(["before", before], ...(plan.residual && plan.norm !== "post" ? [["added", after.map((value, n) => value - before[n])]] : []), ["after", after]);
    } else if (part.kind === "norm" && plan.norm === "pre") {
      const before = part.block === null ? stream(record.S - 1) : stream(record.places.indexOf(part.name.replace(".norm", "")) - 1);
      const middle = part.mean ? before.reduce((sum, value) => sum + value, 0) / before.length : 0;
      const spread = Math.sqrt(before.reduce((sum, value) => sum + (value - middle) ** 2, 0) / before.length + part.eps);
      const how = `${part.mean ? `less its mean ${decimals(middle, 2)}, ` : ""}divided by ${decimals(spread, 2)}`;
      rows.push(["the stream", before], [how, before.map((value) => (value - middle) / spread), 3], ["the gain", floatsOf(part.gain), 2]);
    } else if (part.kind === "norm") {
      rows.push(["the stream after it", stream(record.places.indexOf(part.name.replace(".norm", "")))], ["the gain", floatsOf(part.gain), 2]);
    } else rows.push([part.kind === "head" ? "the stream at its end" : "token and position together", stream(part.kind === "head" ? record.S - 1 : 0)]);
    const width = clamp((view.width < 640 ? view.width : 0.53 * (view.width - 140)) - 190, 90, 480);
    list.replaceChildren(
      ...rows.flatMap(([name, vector, most]) => {
        const canvas = make(doc, "canvas", "", { role: "img", "aria-label": `${name}: ${vector.length} numbers from ${decimals(Math.min(...vector), 2)} to ${decimals(Math.max(...vector), 2)}` });
        paintStrip(view, canvas, vector, most ?? view.most, width, 16, false);
        return [make(doc, "span", "", {}, name), canvas, make(doc, "span", "model-size", {}, `size ${decimals(sizeOf(vector), 1)}`)];
      }),
    );
  };
}

// A list of bars: [[name, value]]; negative ones to the left.
function barList(view, title) {
  const { doc } = view;
  const [heading, items] = [make(doc, "h4"), make(doc, "ol", "model-bars")];
  const fillBars = (text, rows, most) => {
    heading.textContent = text;
    const signed = rows.some(([, value]) => value < 0);
    items.replaceChildren(
      ...rows.map(([name, value]) => {
        const bar = make(doc, "i", value < 0 ? "attention-negative" : "");
        const long = clamp(((signed ? 50 : 100) * Math.abs(value)) / (most || 1), 0, 100);
        bar.style.width = `${long}%`;
        bar.style.left = signed ? `${50 - (value < 0 ? long : 0)}%` : 0;
        return make(doc, "li", "", {}, make(doc, "bdi", "", {}, name), make(doc, "b", signed ? "attention-signed" : "", { "aria-hidden": "true" }, bar), make(doc, "span", "", {}, decimals(value)));
      }),
    );
  };
  return { box: make(doc, "section", "", { "aria-label": title }, heading, items), fillBars };
}

function unitNumbers(view, part, box) {
  const bars = barList(view, "Strongest hidden units");
  bars.box.classList.add("model-two");
  box.append(bars.box);
  return () => {
    const { top, active } = view.record.strongest(part.block, view.focus);
    bars.fillBars(`Its strongest hidden units: ${active} of ${view.plan.units} are above 0`, top.map(([unit, value]) => [`unit ${unit}`, value]), Math.max(...view.record.units.map(Math.abs)));
  };
}

function logitNumbers(view, box) {
  const bars = barList(view, "Largest logits");
  bars.box.classList.add("model-two");
  box.append(bars.box);
  return () => {
    const rows = view.record.following(view.focus, 1).map(({ token, logit }) => [token, logit]);
    bars.fillBars(`The largest of ${view.plan.vocabulary.toLocaleString("en")} logits`, rows, Math.max(...rows.map(([, value]) => Math.abs(value))));
  };
}

// The chosen head large, and what the focused token reads in it.
function attentionNumbers(view, part, box, buttons) {
  const { doc } = view;
  const canvas = make(doc, "canvas", "", { role: "img" });
  const bars = barList(view, "What the token reads");
  box.append(make(doc, "div", "model-reads", {}, canvas, bars.box));
  const open = button(view, "Attention view", "the attention view: all cells, stages and numbers of this head", () => (view.attention ? closeAttention(view) : showAttention(view, part)));
  buttons.append(open);
  return () => {
    const { record, focus, theme } = view;
    const [head, T] = [view.model.get("head"), record.T];
    const { values } = record.matrices.matrix(part.block, head);
    const size = 112;
    const surface = sized(view, canvas, size, size);
    hatch(view, surface, theme, 0, 0, size, size);
    surface.imageSmoothingEnabled = false;
    surface.drawImage(bitmap(view, values, colourScale(theme.palette, 0, 1, { root: true }), T, T, 0, 256), 0, 0, size, size);
    surface.strokeStyle = theme.accent;
    surface.lineWidth = 1.5;
    surface.strokeRect(0.75, (focus * size) / T, size - 1.5, Math.max(3, size / T));
    canvas.setAttribute("aria-label", `Attention weights of head ${head}: ${T} queries by ${T} keys`);
    const { top, rest } = largest(values, focus * T, 1, T, 4);
    const rows = top.map(([n, value]) => [numbered(record.tokens, n), value]);
    if (rest.count) rows.push([count(rest.count, "other"), rest.sum]);
    bars.fillBars(`What ${quote(record.tokens[focus])} reads in head ${head}`, rows, 1);
    open.textContent = view.attention ? "Close the view" : "Attention view";
    followAttention(view, part);
  };
}

// The attention view inside this one: it gets a model of its own, which hands the choice of a head on.
function showAttention(view, part) {
  const state = { layer: part.block, head: view.model.get("head"), query: view.focus, key: null, mode: "heatmap", stage: "weights" };
  Object.assign(state, { log_scale: false, hide_first: false, per_head: false, solo: false, content: attentionContent(view) });
  const listeners = {};
  const model = {
    alone: true,
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const heard of listeners[`change:${name}`] ?? []) heard();
      if (name === "head" && view.model.get("head") !== value) choose(view, { head: value });
    },
    save_changes() {},
    send() {},
    on: (name, heard) => (listeners[name] ??= []).push(heard),
    off: (name, heard) => (listeners[name] = (listeners[name] ?? []).filter((other) => other !== heard)),
  };
  view.attention = { model, end: render({ model, el: view.parts.inside }), focus: view.focus };
  view.opened.update();
  view.parts.inside.scrollIntoView({ block: "nearest" });
}
const attentionContent = ({ record }) => ({ ...record.attention, version: record.version, title: "Attention" });

function followAttention(view) {
  if (!view.attention) return;
  const { model, focus } = view.attention;
  if (model.get("content").version !== view.record.version) {
    const { query, key } = { query: model.get("query"), key: model.get("key") };
    if ((query ?? 0) >= view.record.T) model.set("query", null);
    if ((key ?? 0) >= view.record.T) model.set("key", null);
    model.set("content", attentionContent(view));
  }
  if (focus !== view.focus) model.set("query", view.focus);
  view.attention.focus = view.focus;
  model.set("head", view.model.get("head"));
}

function closeAttention(view) {
  if (!view.attention) return;
  view.attention.end();
  view.attention = null;
  view.parts.inside.replaceChildren();
  view.opened?.update();
}
