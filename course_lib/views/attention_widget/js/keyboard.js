// Keys in the picture. JupyterLab takes letters and arrows as commands for cells: they end at the view (see view.js).

function pictureKeys(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) {
    if (!(event.ctrlKey && (event.key === "Home" || event.key === "End"))) return;
  }
  const { Q, K, L, H } = view.data;
  const { model } = view;
  const from = selection(view);
  const at = { query: from.query ?? 0, key: from.key ?? 0 };
  const first = from.query === null && from.key === null;
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] }[event.key];
  if (move) {
    const point = { query: clamp(at.query + (first ? 0 : move[0]), 0, Q - 1), key: clamp(at.key + (first ? 0 : move[1]), 0, K - 1) };
    goTo(view, point);
  } else if (event.key === "Home" || event.key === "End") {
    const end = event.key === "End";
    goTo(view, { query: event.ctrlKey ? (end ? Q - 1 : 0) : at.query, key: end ? K - 1 : 0 });
  } else if (event.key === "Enter" || event.key === " ") {
    lock(view, first ? { query: 0, key: 0 } : from);
  } else if (event.key === "r") {
    lock(view, { query: at.query, key: null });
  } else if (event.key === "[" || event.key === "]") {
    choose(view, { head: modulo(model.get("head") + (event.key === "]" ? 1 : -1), H) });
  } else if (event.key === "{" || event.key === "}") {
    choose(view, { layer: modulo(model.get("layer") + (event.key === "}" ? 1 : -1), L) });
  } else if (event.key === "m") {
    choose(view, { mode: model.get("mode") === "arcs" ? "heatmap" : "arcs" });
  } else if (event.key === "s" && view.data.stages) {
    const names = STAGES.map(([name]) => name);
    choose(view, { stage: names[(names.indexOf(model.get("stage")) + 1) % 3] });
  } else if (event.key === "o" && L * H > 1) {
    choose(view, { solo: !model.get("solo") });
  } else if (event.key === "g" && canLog(view)) {
    choose(view, { log_scale: !model.get("log_scale") });
  } else if (event.key === "f") {
    choose(view, { hide_first: !model.get("hide_first") });
  } else if (event.key === "c") {
    choose(view, { per_head: !model.get("per_head") });
  } else if (event.key === "Escape") {
    view.point = null;
    if (model.get("query") === null && model.get("key") === null) choose(view, { solo: false });
    else choose(view, { query: null, key: null });
  } else return;
  event.preventDefault();
}

function goTo(view, point) {
  view.point = { ...point, byKeys: true };
  invalidate(view, "focus");
}

// Locks a cell, a row or a column; unlocks what is locked already.
function lock(view, { query, key }) {
  const same = view.model.get("query") === query && view.model.get("key") === key;
  choose(view, same ? { query: null, key: null } : { query, key });
  const place = view.data;
  if (same) say(view, "unlocked");
  else if (query !== null && key !== null) say(view, `locked: ${cellText(view, query, key)}`);
  else if (query !== null) say(view, `locked query ${query} ${quote(place.queries[query])}. ${rowText(view, query)}`);
  else say(view, `locked key ${key} ${quote(place.keys[key])}`);
}
