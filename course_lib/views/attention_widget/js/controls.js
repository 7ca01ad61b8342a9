// The row of choices above the picture: native controls, so that the keyboard and screen readers know them.

const SWITCHES = [
  ["log_scale", "Log colours", "colours by magnitude, down to a ten-thousandth of the largest (g)"],
  ["hide_first", "Hide first key", "first tokens often collect attention that is not needed elsewhere (f)"],
  ["per_head", "Colours per head", "the colour bar spans the values of the head that is shown (c)"],
];
const MODES = [["heatmap", "Heat map"], ["arcs", "Arcs"]];
const STAGES = [["dot", "q\u00b7k"], ["scaled", "scaled, masked"], ["weights", "softmax"]];
const KEYS = [
  ["arrows", "next cell (in the picture) or head (in the small ones)"],
  ["Home, End", "first, last key of the row; with Ctrl: of all"],
  ["Enter", "lock the cell; on a locked cell: unlock it"],
  ["r", "lock the row: a query"],
  ["[  ]", "previous, next head"],
  ["{  }", "previous, next layer"],
  ["m  s  o", "heat map or arcs, next stage, one head or all"],
  ["g  f  c", "log colours, hide first key, colours per head"],
  ["Escape", "unlock"],
];

function buildControls(view) {
  const { data, parts } = view;
  const key = [data.L, data.H, !!data.stages].join();
  if (view.controls?.key === key) return;
  const made = (view.controls = { key, radios: [], switches: {} });
  const bar = [];
  if (data.L > 1) bar.push((made.layer = select(view, "Layer", "layer", data.L)).label);
  if (data.H > 1) bar.push((made.head = select(view, "Head", "head", data.H)).label);
  bar.push(radios(view, "Picture", "mode", MODES));
  if (data.stages) bar.push(radios(view, "Stage", "stage", STAGES));
  for (const [name, label, title] of SWITCHES) bar.push(toggle(view, name, label, title));
  const end = [];
  if (data.L * data.H > 1) end.push((made.solo = button(view, "One head", "one head alone, or all beside it (o)", () => choose(view, { solo: !view.model.get("solo") }))));
  end.push(button(view, "PNG", "save this picture as PNG", () => savePng(view)));
  end.push(button(view, "SVG", "save this picture as SVG", () => saveSvg(view)));
  end.push(keysHelp(view, KEYS));
  parts.controls.replaceChildren(...bar);
  parts.tools.replaceChildren(...end);
}

function keysHelp({ doc }, keys) {
  const list = make(doc, "dl");
  for (const [name, what] of keys) list.append(make(doc, "dt", "", {}, name), make(doc, "dd", "", {}, what));
  return make(doc, "details", "attention-help", {}, make(doc, "summary", "", { "data-lm-suppress-shortcuts": "true" }, "Keys"), list);
}

function select(view, label, name, n) {
  const list = make(view.doc, "select", "", { "data-lm-suppress-shortcuts": "true", "aria-label": label });
  for (let i = 0; i < n; i++) list.append(make(view.doc, "option", "", { value: i }, String(i)));
  list.addEventListener("change", () => timed(view, name, () => choose(view, { [name]: +list.value })));
  return { list, label: make(view.doc, "label", "attention-choice", {}, label + " ", list) };
}

function radios(view, label, name, options) {
  const group = make(view.doc, "span", "attention-radios", { role: "radiogroup", "aria-label": label });
  const id = `attention-${name}-${view.id}`;
  for (const [value, text] of options) {
    const input = make(view.doc, "input", "", { type: "radio", name: id, value, "data-lm-suppress-shortcuts": "true" });
    input.addEventListener("change", () => input.checked && timed(view, name, () => choose(view, { [name]: value })));
    view.controls.radios.push([input, name]);
    group.append(make(view.doc, "label", "", {}, input, make(view.doc, "span", "", {}, text)));
  }
  return group;
}

function toggle(view, name, label, title) {
  const input = make(view.doc, "input", "", { type: "checkbox", "data-lm-suppress-shortcuts": "true" });
  input.addEventListener("change", () => timed(view, name, () => choose(view, { [name]: input.checked })));
  view.controls.switches[name] = input;
  return make(view.doc, "label", "attention-switch", { title }, input, make(view.doc, "span", "", {}, label));
}

function button(view, text, title, action) {
  const made = make(view.doc, "button", "attention-button", { type: "button", title, "data-lm-suppress-shortcuts": "true" }, text);
  made.addEventListener("click", () => timed(view, text, action));
  return made;
}

// Brings the controls to the state of the model.
function setControls(view) {
  const { model, controls } = view;
  if (controls.layer) controls.layer.list.value = model.get("layer");
  if (controls.head) controls.head.list.value = model.get("head");
  for (const [input, name] of controls.radios) input.checked = model.get(name) === input.value;
  for (const [name, input] of Object.entries(controls.switches)) input.checked = model.get(name);
  controls.switches.log_scale.disabled = !canLog(view);
  if (controls.solo) {
    controls.solo.textContent = model.get("solo") ? "All heads" : "One head";
    controls.solo.setAttribute("aria-pressed", model.get("solo"));
  }
}
