// Where the number of one cell comes from: the products of query and key, their sum, the scale, the softmax.

function updateProducts(view) {
  const { data, parts, theme } = view;
  const { query, key } = selection(view);
  const box = parts.products;
  box.hidden = !data.stages || query === null || key === null;
  view.reading.readers.box.hidden = !box.hidden; // there is room for one of them
  if (box.hidden) return;
  const { layer, head } = shownHead(view);
  const terms = data.products(layer, head, query, key);
  const sum = terms.reduce((total, { product }) => total + product, 0);
  const scaled = sum * data.stages.scale;
  if (!box.firstChild) {
    view.terms = { canvas: make(view.doc, "canvas", "", { role: "img" }), text: make(view.doc, "p"), largest: make(view.doc, "p", "attention-rest"), title: make(view.doc, "h4") };
    box.append(view.terms.title, view.terms.text, view.terms.canvas, view.terms.largest);
  }
  const { canvas, text, largest, title } = view.terms;
  title.textContent = `Where it comes from: ${numbered(data.queries, query)} \u00b7 ${numbered(data.keys, key)}`;
  const allowed = data.allowed(layer, head, query, key);
  const weight = data.matrix(layer, head).values[query * data.K + key];
  const steps = [`${terms.length} products q\u2099k\u2099 sum to ${decimals(sum, 4)}`];
  steps.push(`\u00d7 ${exactScale(data.stages)} = ${decimals(scaled, 4)}`);
  steps.push(allowed ? `softmax over its row \u2192 ${decimals(weight, 4)}` : "not allowed: left out of the softmax");
  text.textContent = steps.join("  \u2192  ");
  const most = Math.max(...terms.map(({ product }) => Math.abs(product)), 1e-9);
  const width = Math.min(box.clientWidth || SIDE, 620);
  const [height, middle, step] = [62, 31, Math.min(28, (width - 8) / terms.length)];
  const surface = sized(view, canvas, Math.ceil(step * terms.length) + 8, height);
  surface.fillStyle = theme.line;
  surface.fillRect(0, middle, step * terms.length + 8, 1);
  terms.forEach(({ d, product }, n) => {
    const tall = (24 * Math.abs(product)) / most;
    surface.fillStyle = product < 0 ? theme.second : theme.accent;
    surface.fillRect(4 + n * step + step * 0.12, product < 0 ? middle + 1 : middle - tall, step * 0.76, Math.max(tall, 0.5));
    if (step >= 14) {
      const y = product < 0 ? middle - 6 : middle + 7;
      write(surface, String(d), 4 + (n + 0.5) * step, y, { align: "center", colour: theme.muted, size: 9, font: theme.font });
    }
  });
  const strong = [...terms].sort((a, b) => Math.abs(b.product) - Math.abs(a.product)).slice(0, 3);
  const said = strong.map((t) => `dimension ${t.d}: ${decimals(t.q, 2)} times ${decimals(t.k, 2)} is ${decimals(t.product, 2)}`);
  canvas.setAttribute("aria-label", `The products, one bar each. The largest: ${said.join("; ")}`);
  largest.textContent = `largest: ${strong.slice(0, 2).map((t) => `q${t.d}\u00b7k${t.d} = ${decimals(t.q, 2)} \u00b7 ${decimals(t.k, 2)} = ${decimals(t.product, 2)}`).join("; ")}`;
}

function exactScale({ size, scale }) {
  return Math.abs(scale * Math.sqrt(size) - 1) < 1e-6 ? `1/\u221a${size}` : decimals(scale, 4);
}
