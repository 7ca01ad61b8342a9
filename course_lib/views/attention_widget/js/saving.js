// The picture as a file: PNG at twice the size, or SVG with text that can be selected.

function paintWhole(view, surface) {
  const { layout, theme, data } = view;
  const [width, height] = layout.total;
  const title = [data.title, describe(view).text].filter(Boolean).join(" \u00b7 ");
  surface.fillStyle = theme.back;
  surface.fillRect(0, 0, width, height + 30);
  write(surface, title, 10, 16, { colour: theme.ink, size: 14, bold: true, font: theme.font });
  surface.save();
  surface.translate(0, 30);
  const scale = pictureOf(view).base(view, surface);
  pictureOf(view).focus(view, surface, scale);
  surface.restore();
}

function savePng(view) {
  const [width, height] = view.layout.total;
  const canvas = make(view.doc, "canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * (height + 30)];
  const surface = canvas.getContext("2d");
  surface.scale(2, 2);
  paintWhole(view, surface);
  canvas.toBlob((blob) => download(view, blob, "png"), "image/png");
}

function saveSvg(view) {
  const [width, height] = view.layout.total;
  const surface = new SvgSurface(view.doc, Math.ceil(width), Math.ceil(height + 30));
  paintWhole(view, surface);
  const text = new view.win.XMLSerializer().serializeToString(surface.svg);
  download(view, new view.win.Blob([text], { type: "image/svg+xml" }), "svg");
}

function download(view, blob, ending) {
  const { where } = describe(view);
  const name = [view.data.title || "attention", where].join(" ").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  const link = make(view.doc, "a", "", { href: view.win.URL.createObjectURL(blob), download: `${name}.${ending}` });
  view.root.append(link);
  link.click();
  link.remove();
  view.win.setTimeout(() => view.win.URL.revokeObjectURL(link.href), 10_000);
  say(view, `saved as ${name}.${ending}`);
}
