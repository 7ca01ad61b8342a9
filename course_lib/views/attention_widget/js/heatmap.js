// One head as a heat map: rows are queries, columns are keys.

const NUMBERS_FROM = 26; // pixels of a cell
const SAYS_SOMETHING = 0.05; // a smaller weight has its number only where it is in focus

const heatmap = {
  layout(view, room, most) {
    const { Q, K } = view.data;
    const labels = measuredLabels(view);
    const left = 24 + labels.left + 8;
    const right = view.width < 420 ? 58 : 80;
    const bar = view.width < 420 ? 10 : 20;
    const widest = Math.min(46, (room - left - right) / K);
    // labels that are turned take more height, and a smaller cell turns them
    let cell = Math.min(widest, (most - 68) / Q);
    if (labels.top + 4 > cell) cell = Math.min(widest, (most - 66 - labels.top * (cell >= 18 ? 0.71 : 1)) / Q);
    if (cell >= 3) cell = Math.floor(cell);
    cell = Math.max(cell, 0.5);
    const step = Math.max(1, Math.ceil((LABEL + 1) / cell)); // where labels would overlap, some are left out
    const turn = labels.top + 4 <= cell * step ? 0 : cell >= 18 ? Math.PI / 4 : Math.PI / 2;
    const rise = turn === 0 ? 16 : Math.ceil(labels.top * Math.sin(turn)) + 14;
    const top = 22 + rise;
    const [width, height] = [K * cell, Q * cell];
    return {
      cell, left, top, width, height, turn,
      total: [left + Math.max(width + right, 150), top + Math.max(height, 60) + 30],
      bar: { x: left + width + bar, y: top, width: 12, height: clamp(height, 60, 260) },
      step,
    };
  },

  hit(view, x, y) {
    const { layout, data } = view;
    const [i, j] = [Math.floor((y - layout.top) / layout.cell), Math.floor((x - layout.left) / layout.cell)];
    const [row, column] = [i >= 0 && i < data.Q, j >= 0 && j < data.K];
    if (row && column) return { query: i, key: j };
    if (row && x < layout.left) return { query: i, key: null };
    if (column && y < layout.top) return { query: null, key: j };
    return null;
  },

  base(view, surface) {
    const { layout, theme, data, model } = view;
    const { layer, head } = shownHead(view);
    const { cell, left, top, width, height } = layout;
    const scale = scaleFor(view, layer, head);
    const { values } = currentMatrix(view);
    const hidden = model.get("hide_first") ? 1 : 0;
    hatch(view, surface, theme, left, top, width, height);
    if (surface.hatched && data.size <= 20_000) {
      for (let n = 0; n < data.size; n++) {
        if (Number.isNaN(values[n]) || n % data.K < hidden) continue;
        surface.fillStyle = css(colourOf(scale, values[n]));
        surface.fillRect(left + (n % data.K) * cell, top + Math.floor(n / data.K) * cell, cell, cell);
      }
    } else {
      surface.imageSmoothingEnabled = false;
      surface.drawImage(bitmap(view, values, scale, data.Q, data.K, hidden), left, top, width, height);
    }
    if (hidden) {
      surface.fillStyle = theme.back;
      surface.fillRect(left, top, cell, height);
      surface.strokeStyle = theme.muted;
      surface.lineWidth = 1;
      surface.strokeRect(left + 0.5, top + 0.5, cell - 1, height - 1);
    }
    if (cell >= 12) {
      surface.fillStyle = theme.grid;
      for (let i = 1; i < data.Q; i++) surface.fillRect(left, top + i * cell - 0.5, width, 1);
      for (let j = 1; j < data.K; j++) surface.fillRect(left + j * cell - 0.5, top, 1, height);
    }
    heatmap.names(view, surface, null);
    const place = { colour: theme.muted, size: 11, font: theme.font };
    write(surface, "key: the token it looks at", left, 10, place);
    const looks = height >= 160 ? "query: the token that looks" : "query";
    write(surface, looks, 10, top + Math.max(height, 40) / 2, { ...place, align: "center", angle: -Math.PI / 2 });
    drawBar(view, surface, scale, layout.bar);
    drawBarredKey(view, surface, left, top + height + 18);
    return scale;
  },

  // Numbers where they say something: of weights not the smallest, in a row or column in focus all, in a faded row none.
  numbers(view, surface, scale, chosen, faded) {
    const { layout, data, theme, model } = view;
    view.root.numbers = [];
    if (layout.cell < NUMBERS_FROM) return;
    const { values } = currentMatrix(view);
    const [hidden, size] = [model.get("hide_first") ? 1 : 0, layout.cell >= 40 ? 12 : layout.cell >= 32 ? 11 : 10];
    for (let n = 0; n < data.size; n++) {
      const [i, j, value] = [Math.floor(n / data.K), n % data.K, values[n]];
      if (value !== value || j < hidden || faded(i)) continue;
      if (scale.root && value < SAYS_SOMETHING * scale.high && i !== chosen.query && j !== chosen.key) continue;
      const [x, y] = [layout.left + (j + 0.5) * layout.cell, layout.top + (i + 0.5) * layout.cell];
      const back = colourOf(scale, value);
      const places = scale.high <= 1 ? 2 : Math.abs(value) >= 10 ? 0 : 1;
      const text = value === 0 ? "0" : decimals(value, places);
      write(surface, text, x, y + 0.5, { align: "center", colour: inkOn(back), size, font: theme.font });
      view.root.numbers.push([text, css(back), inkOn(back)]);
    }
  },

  // All labels, or (on top of them) those of one row and column, bold.
  names(view, surface, only) {
    const { layout, theme, data } = view;
    const labels = measuredLabels(view);
    const { cell, left, top, step, turn } = layout;
    for (let i = 0; i < data.Q; i++) {
      if (only ? !only.rows.includes(i) : i % step) continue;
      const y = clamp(top + (i + 0.5) * cell, top + 5, top + layout.height - 5);
      if (only) {
        surface.fillStyle = theme.back;
        surface.fillRect(20, y - Math.max(LABEL, cell) / 2 - 1, left - 23, Math.max(LABEL, cell) + 2);
      }
      write(surface, labels.queries[i], left - 8, y, { align: "right", colour: theme.ink, bold: !!only, font: theme.font });
    }
    for (let j = 0; j < data.K; j++) {
      if (only ? !only.columns.includes(j) : j % step) continue;
      const x = left + (j + 0.5) * cell;
      if (only && turn !== Math.PI / 4) {
        surface.fillStyle = theme.back;
        const half = turn === 0 ? cell / 2 : Math.max(LABEL, cell) / 2 + 1;
        surface.fillRect(x - half, 18, 2 * half, top - 20);
      }
      const place = { colour: theme.ink, bold: !!only, font: theme.font, back: only && turn === Math.PI / 4 ? theme.back : null };
      if (turn === 0) write(surface, labels.keys[j], x, top - 11, { ...place, align: "center" });
      else write(surface, labels.keys[j], x + (turn < 1 ? 2 : 0), top - 7, { ...place, angle: -turn });
    }
  },

  focus(view, surface, scale) {
    const { layout, theme, data, model } = view;
    const { cell, left, top, width, height } = layout;
    const { query, key } = selection(view);
    // A locked row stays clear while the others fade; the pointer may look at one of them meanwhile.
    const locked = model.get("key") === null ? model.get("query") : null;
    const faded = (i) => locked !== null && i !== locked && i !== query;
    if (locked !== null) {
      surface.globalAlpha = 0.5;
      surface.fillStyle = theme.back;
      for (let i = 0; i < data.Q; i++) if (faded(i)) surface.fillRect(left, top + i * cell, width, cell);
      surface.globalAlpha = 1;
    }
    heatmap.numbers(view, surface, scale, { query, key }, faded);
    if (query === null && key === null) return;
    const [y, x] = [top + query * cell, left + key * cell];
    surface.lineWidth = 2;
    surface.strokeStyle = theme.accent;
    if (key !== null) surface.strokeRect(x - 1, top - 1, cell + 2, height + 2);
    if (query !== null) surface.strokeRect(left - 1, y - 1, width + 2, cell + 2);
    if (query !== null && key !== null) {
      surface.lineWidth = 5; // two colours, so that it shows on any cell
      surface.strokeStyle = theme.back;
      surface.strokeRect(x - 1.5, y - 1.5, cell + 3, cell + 3);
      surface.lineWidth = 2;
      surface.strokeStyle = theme.ink;
      surface.strokeRect(x - 2, y - 2, cell + 4, cell + 4);
      const value = currentMatrix(view).values[query * data.K + key];
      if (!Number.isNaN(value)) markBar(view, surface, scale, layout.bar, value);
    }
    heatmap.names(view, surface, { rows: query === null ? [] : [query], columns: key === null ? [] : [key] });
  },
};

// The values as a canvas of one pixel a cell; cells that are not allowed stay transparent. With fewer pixels than
// cells each pixel shows the largest of its cells, so that no thin line is lost.
function bitmap(view, values, scale, rows, columns, hidden, most = Infinity) {
  const shrink = Math.max(1, Math.ceil(Math.max(rows, columns) / most));
  const [h, w] = [Math.ceil(rows / shrink), Math.ceil(columns / shrink)];
  const canvas = make(view.doc, "canvas");
  [canvas.width, canvas.height] = [w, h];
  const surface = canvas.getContext("2d");
  const image = surface.createImageData(w, h);
  const pixels = new Uint32Array(image.data.buffer);
  const { pixels: table, place } = scale;
  const paint = (value) => table[(place(value) * 255 + 0.5) | 0];
  if (shrink === 1) {
    for (let i = 0, n = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++, n++) if (values[n] === values[n] && j >= hidden) pixels[n] = paint(values[n]);
    }
  } else {
    const best = new Float32Array(w * h).fill(-Infinity);
    for (let i = 0, n = 0; i < rows; i++) {
      const row = Math.floor(i / shrink) * w;
      for (let j = 0; j < columns; j++, n++) {
        const at = row + Math.floor(j / shrink);
        if (j >= hidden && values[n] > best[at]) best[at] = values[n];
      }
    }
    for (let n = 0; n < best.length; n++) if (best[n] > -Infinity) pixels[n] = paint(best[n]);
  }
  surface.putImageData(image, 0, 0);
  return canvas;
}
