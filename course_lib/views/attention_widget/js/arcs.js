// One head as lines from the queries on the left to the keys on the right: the stronger, the more visible.

const MOST_LINES = 3000; // of a larger head the largest are drawn, and the picture says so

const arcs = {
  layout(view, room) {
    const { Q, K } = view.data;
    const labels = measuredLabels(view);
    const rows = Math.max(Q, K);
    const cell = clamp((view.model.get("solo") ? 900 : 680) / rows, 1.2, 26);
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

  line(view, surface, i, j, scale, value, theme, strength = 1) {
    const { layout } = view;
    const [x0, x1] = [layout.left, layout.left + layout.width];
    const [y0, y1] = [layout.top + (i + 0.5) * layout.cell, layout.top + (j + 0.5) * layout.cell];
    const part = scale.ramp === "diverging" ? Math.abs(value) / scale.high : scale.place(value);
    if (part < 0.004) return;
    surface.globalAlpha = clamp(0.08 + 0.92 * part, 0, 1) * strength;
    surface.strokeStyle = scale.ramp === "diverging" && value < 0 ? theme.second : theme.accent;
    surface.lineWidth = 0.6 + 4 * part;
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
    drawBar(view, surface, scale, layout.bar);
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
    surface.fillRect(0, layout.top - 6, layout.bar.x - 12, layout.height + 12);
    surface.globalAlpha = 1;
    const [rows, columns] = [new Set(), new Set()];
    const pairs = [];
    if (query !== null && key !== null) pairs.push([query, key]);
    else if (query !== null) for (let j = hidden; j < data.K; j++) pairs.push([query, j]);
    else for (let i = 0; i < data.Q; i++) pairs.push([i, key]);
    for (const [i, j] of pairs) {
      const value = values[i * data.K + j];
      if (Number.isNaN(value)) continue;
      arcs.line(view, surface, i, j, scale, value, theme);
      if (layout.step === 1 && scale.place(value) > 0.04) {
        rows.add(i);
        columns.add(j);
      }
    }
    if (query !== null) rows.add(query);
    if (key !== null) columns.add(key);
    arcs.names(view, surface, { rows, columns });
    if (query !== null && key !== null) {
      const value = values[query * data.K + key];
      if (!Number.isNaN(value)) markBar(view, surface, scale, layout.bar, value);
    }
  },
};
const pictureOf = (view) => (view.model.get("mode") === "arcs" ? arcs : heatmap);
