// The numbers in words and bars below the picture: the cell in focus, what its query reads, who reads its key.

const MOST_READ = 5;
const STAGE_WORDS = { dot: "q\u00b7k", scaled: "scaled score", weights: "weight" };

function buildReading(view) {
  const { doc, parts } = view;
  const list = (name) => {
    const title = make(doc, "h4");
    const items = make(doc, "ol");
    const rest = make(doc, "p", "attention-rest");
    const rows = Array.from({ length: MOST_READ }, () => {
      const [token, bar, value] = [make(doc, "bdi"), make(doc, "i"), make(doc, "span")];
      const row = make(doc, "li", "", {}, token, make(doc, "b", "", { "aria-hidden": "true" }, bar), value);
      items.append(row);
      return { row, token, bar, value };
    });
    return { title, rest, rows, box: make(doc, "section", name, {}, title, items, rest) };
  };
  const made = (view.reading = { line: make(doc, "p", "attention-line"), reads: list("attention-reads"), readers: list("attention-readers") });
  made.locked = make(doc, "span");
  const free = button(view, "Let go", "unlock (Escape)", () => choose(view, { query: null, key: null }));
  made.lock = make(doc, "p", "attention-lock", {}, made.locked, free);
  parts.reading.replaceChildren(made.line, made.lock, make(doc, "div", "attention-lists", {}, made.reads.box, made.readers.box));
}

const numbered = (tokens, n) => `${quote(tokens[n])} (${n})`;

function valueText(view, query, key, value) {
  const { layer, head } = shownHead(view);
  return view.data.isExact(layer, head, query, key, view.model.get("stage")) ? exactText(value) : decimals(value, 4);
}

// One cell as a sentence: on the page, and for screen readers.
function cellText(view, query, key) {
  const { data, model } = view;
  const stage = model.get("stage");
  const value = currentMatrix(view).values[query * data.K + key];
  const [looks, at] = [numbered(data.queries, query), numbered(data.keys, key)];
  if (Number.isNaN(value)) return `${looks} may not look at ${at}`;
  const later = stage === "dot" && !data.allowed(...Object.values(shownHead(view)), query, key) ? ", which it may not look at" : "";
  const number = valueText(view, query, key, value);
  if (stage === "weights" && data.proper) return `${looks} reads ${at}: ${number}`;
  return `${looks} on ${at}, ${stage === "weights" ? "value" : STAGE_WORDS[stage]}: ${number}${later}`;
}

function rowText(view, query) {
  const { data } = view;
  const { top, rest, barred } = largest(currentMatrix(view).values, query * data.K, 1, data.K, MOST_READ);
  const parts = top.map(([n, value]) => `${numbered(data.keys, n)} ${decimals(value)}`);
  if (rest.count) parts.push(`${rest.count} more, together ${decimals(rest.sum)}`);
  if (barred) parts.push(`${barred} not allowed`);
  return parts.join(", ");
}

// What is locked: only words, because the pointer may look elsewhere meanwhile.
function lockedText({ model, data }) {
  const [query, key] = [model.get("query"), model.get("key")];
  if (query !== null && key !== null) return "This cell is locked.";
  return query !== null ? `Row ${quote(data.queries[query])} is locked.` : key !== null ? `Column ${quote(data.keys[key])} is locked.` : "";
}

function updateReading(view) {
  const { data, model, reading } = view;
  const { query, key } = selection(view);
  const { values } = currentMatrix(view);
  const scale = barScale(view);
  const hidden = model.get("hide_first") ? 1 : 0;
  const locked = model.get("query") !== null || model.get("key") !== null;
  reading.lock.classList.toggle("attention-empty", !locked);
  reading.locked.textContent = lockedText(view);
  if (query !== null && key !== null) reading.line.textContent = cellText(view, query, key);
  else if (query !== null) reading.line.textContent = `Query ${numbered(data.queries, query)}`;
  else if (key !== null) reading.line.textContent = `Key ${numbered(data.keys, key)}`;
  else reading.line.textContent = "Point at a cell or a token: a click locks it.";
  if (query === null && key === null) return updateSummary(view, hidden);
  const reader = key ?? (data.same ? query : null);
  const read = query === null ? null : largest(values, query * data.K, 1, data.K, MOST_READ, hidden ? 0 : -1);
  const readers = reader === null || (hidden && reader === 0) ? null : largest(values, reader, data.K, data.Q, MOST_READ);
  fill(scale, reading.reads, read, (n) => data.keys[n], query === null ? "" : `What ${quote(data.queries[query])} reads`, key);
  fill(scale, reading.readers, readers, (n) => data.queries[n], reader === null ? "" : `What reads ${quote(data.keys[reader])}`, query);
}

// With nothing in focus: what stands out in this head.
function updateSummary(view, hidden) {
  const { data, reading } = view;
  const scale = barScale(view);
  const { cells, means } = summaryOf(currentMatrix(view), data.Q, data.K, hidden);
  const none = { rest: { count: 0 }, barred: 0 };
  const pair = (n) => `${data.queries[cells[n][0]]} \u2192 ${data.keys[cells[n][1]]}`;
  fill(scale, reading.reads, { ...none, top: cells.map(([, , value], n) => [n, value]) }, pair, "Largest in this head: query \u2192 key", null);
  fill(scale, reading.readers, { ...none, top: means }, (n) => data.keys[n], "Most-read keys: mean", null);
}

// The scale of the bars: that of the colour bar, but in proportion to the values.
function barScale(view) {
  const { layer, head } = shownHead(view);
  const { low, high, signed } = scaleFor(view, layer, head);
  return high <= 0 ? { low: -high || low, high: -low, signed: true } : { low: view.model.get("log_scale") ? 0 : low, high, signed: !!signed };
}

function fill(scale, list, found, nameOf, title, chosen) {
  list.box.classList.toggle("attention-empty", !found);
  if (!found) return;
  list.title.textContent = title;
  // A full bar is the end of the colour bar; scores of both signs start from the middle, negative ones to the left.
  const { low, high, signed } = scale;
  const length = (value) => clamp(signed ? (50 * Math.abs(value)) / high : (100 * (value - low)) / (high - low), 0, 100);
  list.rows.forEach(({ row, token, bar, value }, n) => {
    const item = found.top[n];
    row.hidden = !item;
    if (!item) return;
    token.textContent = nameOf(item[0]);
    value.textContent = decimals(item[1]);
    bar.style.width = `${length(item[1])}%`;
    bar.style.left = signed ? `${50 - (item[1] < 0 ? length(item[1]) : 0)}%` : 0;
    bar.className = item[1] < 0 ? "attention-negative" : "";
    bar.parentElement.classList.toggle("attention-signed", signed);
    row.classList.toggle("attention-chosen", item[0] === chosen);
  });
  const rest = [];
  if (found.rest.count) rest.push(`${count(found.rest.count, "other")} together ${decimals(found.rest.sum)}`);
  if (found.barred) rest.push(`${found.barred} not allowed`);
  list.rest.textContent = rest.join(" \u00b7 ");
}

// For screen readers: the cell in focus is the grid's active descendant; two take turns, so that a change is noticed.
function updateCell(view) {
  const { parts, data } = view;
  const { query, key } = selection(view);
  if (query === null && key === null) return parts.figure.removeAttribute("aria-activedescendant");
  const cell = parts.cells[(view.turn = 1 - (view.turn ?? 0))];
  const text = query !== null && key !== null ? cellText(view, query, key) : view.reading.line.textContent;
  cell.textContent = text;
  cell.setAttribute("aria-colindex", (key ?? 0) + 1);
  cell.parentElement.setAttribute("aria-rowindex", (query ?? 0) + 1);
  cell.setAttribute("aria-selected", view.model.get("query") === query && view.model.get("key") === key);
  parts.cells[1 - view.turn].textContent = "";
  parts.figure.setAttribute("aria-activedescendant", cell.id);
  parts.figure.setAttribute("aria-rowcount", data.Q);
  parts.figure.setAttribute("aria-colcount", data.K);
}

// Something that happened, for screen readers.
function say(view, text) {
  view.parts.live.textContent = text;
}

function describe(view) {
  const { data, model } = view;
  const { layer, head } = shownHead(view);
  const where = [data.L > 1 ? `layer ${layer}` : "", data.H > 1 ? `head ${head}` : ""].filter(Boolean).join(" \u00b7 ");
  const what = { dot: "scores q\u00b7k", scaled: "scores, scaled and masked", weights: data.proper ? "attention weights" : "values" }[model.get("stage")];
  return { where, what, text: [where, what].filter(Boolean).join(" \u00b7 ") };
}

// Asks the kernel for the exact numbers of the row and column in focus; without a kernel nobody answers.
function askExact(view) {
  const { model, data, win } = view;
  win.clearTimeout(view.asking);
  if (model.alone || data.learning || model.get("stage") !== "weights") return; // of a saved step the kernel has no more
  const { query, key } = selection(view);
  const { layer, head } = shownHead(view);
  if (query === null && key === null) return;
  const known = data.matrix(layer, head);
  if ((query === null || known.rows.has(query)) && (key === null || known.columns.has(key))) return;
  view.asking = win.setTimeout(() => {
    if (!view.gone) model.send({ kind: "exact", version: data.version, layer, head, query, key });
  }, 40);
}
