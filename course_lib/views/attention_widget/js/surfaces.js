// Where pictures are drawn: a canvas in the page, or an SVG document that takes the same calls.

// The colours of the page, read once for each theme.
function readTheme(view) {
  const style = view.win.getComputedStyle(view.root);
  const colour = (name) => style.getPropertyValue(`--attention-${name}`).trim();
  const theme = { font: style.fontFamily };
  for (const name of ["ink", "muted", "back", "line", "accent", "second", "barred", "hatch", "grid"]) theme[name] = colour(name);
  const ink = make(view.doc, "canvas").getContext("2d");
  ink.fillStyle = theme.back;
  theme.palette = paletteOn(hexes(ink.fillStyle.slice(1, 7))); // canvases write any opaque colour as #rrggbb
  return theme;
}

// The canvas at this size in page pixels, sharp on dense screens; returns its context, cleared.
function sized(view, canvas, width, height) {
  const dense = view.win.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * dense), Math.round(height * dense)];
  if (canvas.width !== w || canvas.height !== h) {
    [canvas.width, canvas.height] = [w, h];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  }
  const surface = canvas.getContext("2d");
  surface.setTransform(dense, 0, 0, dense, 0, 0);
  surface.clearRect(0, 0, width, height);
  return surface;
}

// The stripes that mean "not allowed".
function hatch(view, surface, theme, x, y, width, height) {
  if (surface.hatched) return surface.hatched(theme, x, y, width, height);
  const key = theme.barred + theme.hatch;
  if (view.stripes?.key !== key) {
    const tile = make(view.doc, "canvas");
    tile.width = tile.height = 14;
    const ink = tile.getContext("2d");
    ink.fillStyle = theme.barred;
    ink.fillRect(0, 0, 14, 14);
    ink.strokeStyle = theme.hatch;
    ink.lineWidth = 1.4;
    ink.beginPath();
    for (const shift of [-14, 0, 14]) for (const half of [0, 7]) {
      ink.moveTo(shift + half, 14);
      ink.lineTo(shift + half + 14, 0);
    }
    ink.stroke();
    view.stripes = { key, tile };
  }
  const pattern = surface.createPattern(view.stripes.tile, "repeat");
  pattern.setTransform(new view.win.DOMMatrix().scale(0.5));
  surface.fillStyle = pattern;
  surface.fillRect(x, y, width, height);
}

// The part of a canvas context that the pictures use, as SVG elements.
class SvgSurface {
  constructor(doc, width, height) {
    // The HTML parser knows the namespace of SVG, so that it need not be written here.
    this.space = new doc.defaultView.DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
    this.doc = doc;
    this.svg = this.element("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif" });
    Object.assign(this, { textAlign: "left", textBaseline: "alphabetic", direction: "ltr", path: "", stack: [], moves: "" });
  }
  element(tag, attributes, parent = this.svg) {
    const made = this.doc.createElementNS(this.space, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(name, value);
    parent?.append(made);
    return made;
  }
  round = (value) => Math.round(value * 100) / 100;
  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, moves } = this;
    this.stack.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, moves });
  }
  restore() {
    Object.assign(this, this.stack.pop());
  }
  translate(x, y) {
    this.moves += `translate(${this.round(x)} ${this.round(y)})`;
  }
  rotate(angle) {
    this.moves += `rotate(${this.round((angle * 180) / Math.PI)})`;
  }
  get seen() {
    return { opacity: this.globalAlpha === 1 ? "" : this.round(this.globalAlpha), transform: this.moves };
  }
  box(x, y, width, height) {
    return { x: this.round(x), y: this.round(y), width: this.round(width), height: this.round(height) };
  }
  fillRect(x, y, width, height) {
    this.element("rect", { ...this.box(x, y, width, height), fill: this.fillStyle, ...this.seen });
  }
  strokeRect(x, y, width, height) {
    const line = { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth };
    this.element("rect", { ...this.box(x, y, width, height), ...line, ...this.seen });
  }
  beginPath() {
    this.path = "";
  }
  moveTo(...point) {
    this.path += `M${point.map(this.round).join(" ")}`;
  }
  lineTo(...point) {
    this.path += `L${point.map(this.round).join(" ")}`;
  }
  bezierCurveTo(...points) {
    this.path += `C${points.map(this.round).join(" ")}`;
  }
  stroke() {
    this.element("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, ...this.seen });
  }
  fill() {
    this.element("path", { d: this.path, fill: this.fillStyle, ...this.seen });
  }
  fillText(text, x, y) {
    const [, weight, size] = this.font.match(/(bold )?([\d.]+)px/);
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const baseline = this.textBaseline === "middle" ? "central" : "auto";
    const form = { "font-size": size, "font-weight": weight ? "bold" : "", "font-family": this.font.split("px ")[1] };
    const place = { x: this.round(x), y: this.round(y), "text-anchor": anchor, "dominant-baseline": baseline };
    this.element("text", { ...place, ...form, fill: this.fillStyle, ...this.seen }).textContent = text;
  }
  drawImage(canvas, x, y, width, height) {
    const image = { ...this.box(x, y, width, height), href: canvas.toDataURL(), preserveAspectRatio: "none" };
    this.element("image", { ...image, style: "image-rendering: pixelated" });
  }
  hatched(theme, x, y, width, height) {
    if (!this.pattern) {
      const size = { id: "not-allowed", width: 3.5, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
      this.pattern = this.element("pattern", size);
      this.element("rect", { width: 3.5, height: 7, fill: theme.barred }, this.pattern);
      this.element("rect", { width: 0.8, height: 7, fill: theme.hatch }, this.pattern);
    }
    this.element("rect", { ...this.box(x, y, width, height), fill: "url(#not-allowed)" });
  }
}
