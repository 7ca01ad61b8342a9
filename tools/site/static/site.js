// The live views of the site, and light colours on paper.
(() => {
  const root = document.documentElement;
  const theme = () => (root.dataset.theme === "dark" ? "dark" : "light");
  const frames = [];

  // A picture of a view gives way to the view itself when the reader comes near it.
  function wake(box) {
    const pages = JSON.parse(box.dataset.pages);
    const still = box.querySelector("img");
    const frame = document.createElement("iframe");
    frame.title = `Live view: ${still.alt.split(":")[0]}`;
    frame.src = pages[0][1];
    frame.style.height = `${still.height}px`;
    frames.push({ frame, box });
    box.append(frame);
    if (pages.length === 1) return;
    const row = document.createElement("div");
    row.className = "live-choices";
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "Recorded settings");
    const buttons = pages.map(([label, page], n) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-pressed", String(n === 0));
      button.addEventListener("click", () => {
        frame.src = page;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      });
      return button;
    });
    const note = document.createElement("p");
    note.textContent = "Recorded for these settings. To type a sentence of your own, run the notebook.";
    row.append(...buttons, note);
    box.prepend(row);
  }

  addEventListener("message", ({ source, data }) => {
    const found = frames.find(({ frame }) => frame.contentWindow === source);
    if (!found || !(data.height > 0)) return;
    found.frame.style.height = `${Math.ceil(data.height)}px`;
    if (!found.box.classList.contains("alive") || found.page !== found.frame.src) {
      found.page = found.frame.src;
      source.postMessage({ theme: theme() }, "*");
      found.box.classList.add("alive");
    }
  });
  new MutationObserver(() => {
    for (const { frame } of frames) frame.contentWindow.postMessage({ theme: theme() }, "*");
  }).observe(root, { attributes: true, attributeFilter: ["data-theme"] });

  addEventListener("DOMContentLoaded", () => {
    const near = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          near.unobserve(target);
          wake(target);
        }
      },
      { rootMargin: "200px" },
    );
    for (const box of document.querySelectorAll(".live")) near.observe(box);
  });

  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => (root.dataset.theme = before));
})();
