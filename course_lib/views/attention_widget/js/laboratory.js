// AttentionLab: a sentence, switches that change the model, and the next token's probabilities. The kernel computes.

const LAB_SWITCHES = [
  ["causal", "Causal mask", "off: every token may look at every other, later ones included"],
  ["scaled", "Scale 1/\u221ad", "off: the scores are not scaled, which makes the softmax sharper"],
];

function buildLab(view) {
  const { doc, model, data, parts } = view;
  if (!data.lab || view.lab) return;
  const area = make(doc, "textarea", "attention-text", { rows: 2, "aria-label": "Sentence", spellcheck: "false", "data-lm-suppress-shortcuts": "true" });
  area.value = model.get("text");
  area.addEventListener("input", () => change(view, { text: area.value }));
  const switches = {};
  const row = make(doc, "div", "attention-controls");
  for (const [name, label, title] of LAB_SWITCHES) {
    const input = make(doc, "input", "", { type: "checkbox", "data-lm-suppress-shortcuts": "true" });
    input.addEventListener("change", () => change(view, { [name]: input.checked }));
    switches[name] = input;
    row.append(make(doc, "label", "attention-switch", { title }, input, make(doc, "span", "", {}, label)));
  }
  const off = make(doc, "input", "", { type: "checkbox", "data-lm-suppress-shortcuts": "true" });
  const offText = make(doc, "span");
  off.addEventListener("change", () => {
    const here = [model.get("layer"), model.get("head")];
    const others = model.get("off").filter(([l, h]) => l !== here[0] || h !== here[1]);
    change(view, { off: off.checked ? [...others, here] : others });
  });
  row.append(make(doc, "label", "attention-switch", { title: "its context becomes 0; its weights are still shown" }, off, offText));
  const slider = make(doc, "input", "", { type: "range", min: 0, max: 3, step: 0.05, "aria-label": "Temperature", "data-lm-suppress-shortcuts": "true" });
  const sliderText = make(doc, "output");
  slider.addEventListener("input", () => change(view, { temperature: +slider.value }));
  row.append(make(doc, "label", "attention-choice", { title: "divides the logits of the next token; 0 takes the largest" }, "Temperature ", slider, sliderText));
  row.append(button(view, "As trained", "reset all switches", () => change(view, { causal: true, scaled: true, temperature: 1, off: [] })));
  const note = make(doc, "p", "attention-note", { role: "status" });
  const { next, items } = nextTokens(view, data.lab.next.length, (n) => change(view, { text: view.data.lab.next[n].longer }));
  const left = make(doc, "div", "attention-sentence", {}, area, row, note);
  const nextTitle = make(doc, "h4", "", {}, "What comes next");
  const hint = make(doc, "p", "attention-hint", {}, "click a token to append it \u00b7 the tick: the model as trained");
  const right = make(doc, "section", "attention-coming", {}, nextTitle, next, hint);
  parts.lab.replaceChildren(left, right);
  view.lab = { area, switches, off, offText, slider, sliderText, note, items };
  for (const name of ["text", "causal", "scaled", "temperature", "off"]) listen(view, name, () => setLab(view));
}

function change(view, values) {
  view.asked = view.win.performance.now();
  for (const [name, value] of Object.entries(values)) view.model.set(name, value);
  view.model.save_changes();
  setLab(view);
}

// Brings the panel to the state of the model.
function setLab(view) {
  const { lab, model, data } = view;
  if (!lab) return;
  if (lab.area.value !== model.get("text")) lab.area.value = model.get("text");
  for (const [name, input] of Object.entries(lab.switches)) input.checked = model.get(name);
  const here = [model.get("layer"), model.get("head")];
  lab.off.checked = model.get("off").some(([l, h]) => l === here[0] && h === here[1]);
  lab.offText.textContent = `Switch off ${data.L > 1 ? `layer ${here[0]} ` : ""}head ${here[1]}`;
  lab.slider.value = model.get("temperature");
  lab.sliderText.textContent = decimals(model.get("temperature"), 2);
  lab.note.textContent = model.alone ? "The sentence cannot change without a kernel." : data.lab.note;
  if (model.alone) for (const input of view.parts.lab.querySelectorAll("input, textarea, button")) input.disabled = true;
  data.lab.next.forEach((following, n) => setNext(lab.items[n], following));
}

// The list of the tokens that may come next, a button each.
function nextTokens(view, length, chosen) {
  const { doc } = view;
  const next = make(doc, "ol", "attention-next", { "aria-label": "Next token: probabilities" });
  const items = Array.from({ length }, (_, n) => {
    const [token, bar, mark, value, moved] = [make(doc, "bdi"), make(doc, "i"), make(doc, "u"), make(doc, "span"), make(doc, "em")];
    const made = make(doc, "button", "", { type: "button", "data-lm-suppress-shortcuts": "true" }, token, make(doc, "b", "", { "aria-hidden": "true" }, bar, mark), value, moved);
    made.addEventListener("click", () => chosen(n));
    next.append(make(doc, "li", "", {}, made));
    return { made, token, bar, mark, value, moved };
  });
  return { next, items };
}

function setNext(item, { token, now, trained }) {
  item.token.textContent = token;
  item.bar.style.width = `${100 * now}%`;
  item.mark.style.left = `${100 * trained}%`;
  item.value.textContent = decimals(now);
  const moved = now - trained;
  item.moved.textContent = Math.abs(moved) < 0.0005 ? "" : (moved > 0 ? "+" : "") + decimals(moved);
  item.moved.className = moved < 0 ? "attention-less" : "attention-more";
  item.made.setAttribute("aria-label", `${token}: ${decimals(now)}, as trained ${decimals(trained)}; append it`);
}
