// Drawings in steps. A drawing is shown as an image, so nothing in it can run; its words are its alternative text.

function renderSteps({ model, el }) {
  const made = (tag, parent, more = {}) => parent.appendChild(Object.assign(document.createElement(tag), more));
  const root = made("div", el, { className: "gpt-steps", tabIndex: 0 });
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.setAttribute("role", "group");
  const bar = made("div", root, { className: "gpt-steps-bar" });
  const back = made("button", bar, { type: "button", textContent: "◀ Back" });
  const slider = made("input", bar, { type: "range", min: 0 });
  const next = made("button", bar, { type: "button", textContent: "Next ▶" });
  const count = made("span", bar, { className: "gpt-steps-count" });
  const image = made("img", root);
  const words = made("p", root, { className: "gpt-steps-words" });
  words.setAttribute("aria-live", "polite");

  const last = () => model.get("pictures").length - 1;
  function show() {
    const n = model.get("step");
    root.setAttribute("aria-label", model.get("label"));
    slider.setAttribute("aria-label", model.get("label"));
    slider.setAttribute("aria-valuetext", `${n + 1} of ${last() + 1}`);
    slider.max = last();
    slider.value = n;
    back.disabled = n === 0;
    next.disabled = n === last();
    count.textContent = `${model.get("label")} ${n + 1} of ${last() + 1}`;
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(model.get("pictures")[n]);
    image.alt = "";  // its words stand below, where they are read when they change
    words.textContent = model.get("words")[n];
    root.dataset.ready = "1";
  }
  function go(n) {
    const to = Math.max(0, Math.min(last(), n));
    if (to === model.get("step")) return;
    model.set("step", to);
    model.save_changes();
  }
  back.onclick = () => go(model.get("step") - 1);
  next.onclick = () => go(model.get("step") + 1);
  slider.oninput = () => go(Number(slider.value));
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // or JupyterLab would cut a cell at "x"
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves)) return;
    event.preventDefault(); // the slider would move as well
    go(model.get("step") + moves[event.key]);
  };
  model.on("change:step", show);
  show();
  return () => model.off("change:step", show);
}
