// One head as lines from the queries on the left to the keys on the right: the stronger, the more visible.

const MOST_LINES = 3000; // of a larger head the largest are drawn, and the picture says so

// How strong a line is, 0 … 1: in proportion to the value, as the thickness of a line is seen.
function strengthOf(scale, value) {
  if (scale.log) return scale.place(value);
  return scale.signed ? Math.abs(value) / scale.high : clamp((value - scale.low) / (scale.high - scale.low), 0, 1);
}

const arcs = {
  layout(view, room, most) {
    const { Q, K } = view.data;
    const labels = measuredLabels(view);
    const rows = Math.max(Q, K);
    const cell = clamp((most - 64) / rows, 1.2, 26);
    const right = 92 + labels.top + 10;
    const left = 12 + labels.left + 8;
    const width = clamp(room - left - right, 80, 420);
    const top = 34;
    return {
      cell, left, top, width, height: rows * cell,
      total: [left + width + right, top + Math.max(rows * cell, 60) + 30],
      bar: { x: left + width + labels.top + 34, y: top, width: 12, height: clamp(rows * cell, 60, 260) },
      step: Math.max(1, Math.ceil((LABEL + 1) / cell)),
    };
  },

  hit(view, x, y) {
    const { layout, data } = view;
    const n = Math.floor((y - layout.top) / layout.cell);
    if (x > layout.bar.x - 16 || n < 0) return null;
    const left = x < layout.left + layout.width / 2;
    if (left) return n < data.Q ? { query: n, key: null } : null;
    return n < data.K ? { query: null, key: n } : null;
  },

  pen(surface, theme, part, negative) {
    surface.globalAlpha = clamp(0.08 + 0.92 * part, 0, 1);
    surface.strokeStyle = negative ? theme.second : theme.accent;
    surface.lineWidth = 0.6 + 4 * part;
  },

  // What the thickness of a line means, in place of the colour bar.
  key(view, surface, scale) {
    const { layout, theme } = view;
    const high = scale.signed ? [scale.high, scale.high / 2, -scale.high / 2, scale.low] : [1, 0.5, 0.25, 0.1].map((part) => scale.low + part * (scale.high - scale.low));
    const values = scale.log ? scale.ticks.slice(0, 4) : high;
    values.forEach((value, n) => {
      const y = layout.bar.y + 8 + 18 * n;
      arcs.pen(surface, theme, strengthOf(scale, value), value < 0);
      surface.beginPath();
      surface.moveTo(layout.bar.x, y);
      surface.lineTo(layout.bar.x + 26, y);
      surface.stroke();
      surface.globalAlpha = 1;
      write(surface, tickText(value), layout.bar.x + 33, y, { colour: theme.ink, size: 11, font: theme.font });
    });
  },

  line(view, surface, i, j, scale, value, theme) {
    const { layout } = view;
    const [x0, x1] = [layout.left, layout.left + layout.width];
    const [y0, y1] = [layout.top + (i + 0.5) * layout.cell, layout.top + (j + 0.5) * layout.cell];
    const part = strengthOf(scale, value);
    if (part < 0.004) return;
    arcs.pen(surface, theme, part, value < 0);
    const bend = layout.width * 0.4;
    surface.beginPath();
    surface.moveTo(x0, y0);
    surface.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    surface.stroke();
    surface.globalAlpha = 1;
  },

  // The cells to draw as [query, key, value], the largest last, on top.
  lines(view) {
    const { data, model } = view;
    const { values } = currentMatrix(view);
    const hidden = model.get("hide_first") ? 1 : 0;
    const found = [];
    for (let n = 0; n < data.size; n++) if (values[n] === values[n] && n % data.K >= hidden) found.push(n);
    const all = found.length;
    found.sort((a, b) => Math.abs(values[a]) - Math.abs(values[b]));
    return { all, lines: found.slice(-MOST_LINES).map((n) => [Math.floor(n / data.K), n % data.K, values[n]]) };
  },

  base(view, surface) {
    const { layout, theme } = view;
    const { layer, head } = shownHead(view);
    const scale = scaleFor(view, layer, head);
    const { all, lines } = arcs.lines(view);
    for (const [i, j, value] of lines) arcs.line(view, surface, i, j, scale, value, theme);
    arcs.names(view, surface, null);
    const place = { colour: theme.muted, size: 11, font: theme.font };
    write(surface, "query", layout.left - 8, 14, { ...place, align: "right" });
    write(surface, "key", layout.left + layout.width + 8, 14, place);
    arcs.key(view, surface, scale);
    if (all > lines.length) {
      const text = `the ${lines.length.toLocaleString("en")} largest of ${count(all, "line")}`;
      write(surface, text, layout.left, layout.top + layout.height + 18, place);
    } else if (view.model.get("hide_first")) {
      write(surface, "the first key is hidden", layout.left, layout.top + layout.height + 18, place);
    }
    return scale;
  },

  names(view, surface, only) {
    const { layout, theme, data } = view;
    const labels = measuredLabels(view);
    const sides = [
      { texts: labels.queries, n: data.Q, x: layout.left - 8, align: "right", chosen: only?.rows },
      { texts: labels.keys, n: data.K, x: layout.left + layout.width + 8, align: "left", chosen: only?.columns },
    ];
    for (const { texts, n, x, align, chosen } of sides) {
      for (let i = 0; i < n; i++) {
        if (only ? !chosen.has(i) : i % layout.step) continue;
        const y = layout.top + (i + 0.5) * layout.cell;
        if (only) {
          surface.fillStyle = theme.back; // over the same label in ordinary type
          surface.fillRect(align === "right" ? 0 : x - 2, y - LABEL / 2 - 2, (align === "right" ? x : labels.top) + 4, LABEL + 4);
        }
        write(surface, texts[i], x, y, { align, colour: theme.ink, bold: !!only, font: theme.font });
      }
    }
  },

  focus(view, surface, scale) {
    const { layout, theme, data, model } = view;
    const { query, key } = selection(view);
    if (query === null && key === null) return;
    const { values } = currentMatrix(view);
    const hidden = model.get("hide_first") ? 1 : 0;
    surface.fillStyle = theme.back;
    surface.globalAlpha = 0.86;
    surface.fillRect(layout.left, layout.top - 6, layout.width, layout.height + 12); // the lines, not the labels
    surface.globalAlpha = 1;
    const [rows, columns] = [new Set(), new Set()];
    const pairs = [];
    const cell = query !== null && key !== null && !Number.isNaN(values[query * data.K + key]);
    if (cell) pairs.push([query, key]);
    else if (query !== null) for (let j = hidden; j < data.K; j++) pairs.push([query, j]);
    else for (let i = 0; i < data.Q; i++) pairs.push([i, key]);
    for (const [i, j] of pairs) {
      const value = values[i * data.K + j];
      if (Number.isNaN(value)) continue;
      arcs.line(view, surface, i, j, scale, value, theme);
      if (layout.step === 1 && strengthOf(scale, value) > 0.04) {
        rows.add(i);
        columns.add(j);
      }
    }
    if (query !== null) rows.add(query);
    if (key !== null) columns.add(key);
    arcs.names(view, surface, { rows, columns });
  },
};
const pictureOf = (view) => (view.model.get("mode") === "arcs" ? arcs : heatmap);
