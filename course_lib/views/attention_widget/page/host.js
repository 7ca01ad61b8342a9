// Shows saved views without a kernel: one of `view.to_html()`, or all of an exported notebook. Nothing is loaded.
(() => {
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const unpacked = (value) => {
    if (Array.isArray(value)) return value.map(unpacked);
    if (value === null || typeof value !== "object") return value;
    if (typeof value.base64 === "string") return bytes(value.base64);
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unpacked(item)]));
  };

  // What anywidget gives to render(): the traits, their changes, and a kernel that never answers.
  function modelOf(state) {
    const listeners = {};
    return {
      get: (name) => state[name],
      set(name, value) {
        if (state[name] === value) return;
        state[name] = value;
        for (const f of listeners["change:" + name] ?? []) f();
      },
      save_changes() {},
      send() {},
      on: (name, f) => (listeners[name] ??= []).push(f),
      off: (name, f) => (listeners[name] = (listeners[name] ?? []).filter((g) => g !== f)),
      alone: true,
    };
  }

  const modules = {};
  const imported = (source) =>
    (modules[source] ??= import(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))));

  async function show(source, model, el) {
    try {
      (await imported(source)).default.render({ model, el });
    } catch (error) {
      el.textContent = "The view could not be drawn: " + error;
      console.error(error);
    }
  }

  function showPage() {
    const json = (id) => JSON.parse(document.getElementById(id).textContent);
    const el = document.getElementById("view");
    el.replaceChildren();
    show(json("module"), modelOf(unpacked(json("state"))), el);
  }

  function showNotebook() {
    const saved = document.querySelector('script[type="application/vnd.jupyter.widget-state+json"]');
    const models = saved ? JSON.parse(saved.textContent).state : {};
    const known = {};
    const modelFor = (id) => {
      const state = { ...models[id].state };
      for (const { path, data } of models[id].buffers ?? []) {
        let place = state;
        for (const step of path.slice(0, -1)) place = place[step];
        place[path.at(-1)] = bytes(data);
      }
      return (known[id] ??= modelOf(state)); // two views of one widget share their choices
    };
    for (const script of document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')) {
      const id = JSON.parse(script.textContent).model_id;
      const el = document.createElement("div");
      script.after(el);
      if (models[id]?.model_module !== "anywidget") {
        el.textContent = "This control needs a running kernel.";
        continue;
      }
      const { _css, _esm } = models[id].state;
      if (_css && ![...document.querySelectorAll("style")].some((style) => style.textContent === _css)) {
        const style = document.createElement("style");
        style.textContent = _css;
        document.head.append(style);
      }
      show(_esm, modelFor(id), el);
    }
  }

  const start = () => (document.getElementById("module") ? showPage() : showNotebook());
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
