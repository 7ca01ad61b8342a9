// LearningView: the loss while the model trained, and a slider over the steps whose attention was saved.

const LOSS = { height: 74, left: 44, right: 8 };

function buildLearning(view) {
  const { doc, model, data, parts } = view;
  if (!data.learning || view.learning) return;
  const suppress = { "data-lm-suppress-shortcuts": "true" };
  const canvas = make(doc, "canvas", "", { role: "img" });
  const slider = make(doc, "input", "", { type: "range", min: 0, step: 1, "aria-label": "Training step", ...suppress });
  const told = make(doc, "output");
  slider.addEventListener("input", () => timed(view, "frame", () => chooseFrame(view, +slider.value)));
  const play = button(view, "Play", "all saved steps, one after the other", () => playFrames(view));
  const row = make(doc, "div", "attention-controls", {}, play, make(doc, "label", "attention-choice", {}, "Training step ", slider, told));
  const hint = make(doc, "p", "attention-hint", {}, "the loss on the left, the attention at that step below");
  parts.lab.replaceChildren(canvas, make(doc, "div", "", {}, row, hint));
  view.learning = { canvas, slider, told, play };
  listen(view, "frame", () => showFrame(view));
  view.ends.push(() => view.win.clearInterval(view.playing));
}

function chooseFrame(view, n) {
  choose(view, { frame: n === view.data.learning.steps.length - 1 ? null : n });
}

const frameOf = ({ model, data }) => model.get("frame") ?? data.learning.steps.length - 1;

function playFrames(view) {
  const stop = () => {
    view.win.clearInterval(view.playing);
    view.playing = null;
    view.learning.play.textContent = "Play";
  };
  if (view.playing) return stop();
  const last = view.data.learning.steps.length - 1;
  chooseFrame(view, frameOf(view) === last ? 0 : frameOf(view));
  view.learning.play.textContent = "Stop";
  view.playing = view.win.setInterval(() => {
    const there = Math.min(frameOf(view) + 1, view.data.learning.steps.length - 1);
    chooseFrame(view, there);
    if (there === view.data.learning.steps.length - 1) stop();
  }, 140);
}

// Puts the weights of the chosen step in the place of those that are shown.
function showFrame(view) {
  const { data } = view;
  if (!data.learning) return;
  data.layers = data.learning.frames[Math.min(frameOf(view), data.learning.frames.length - 1)].map(wordsOf);
  data.cache.clear();
  invalidate(view, "base", true);
}

function setLearning(view) {
  const { data, learning, theme } = view;
  if (!learning || !data.learning) return;
  const { steps, losses } = data.learning;
  const here = Math.min(frameOf(view), steps.length - 1);
  learning.slider.max = steps.length - 1;
  learning.slider.value = here;
  learning.slider.setAttribute("aria-valuetext", `step ${steps[here]}`);
  const loss = losses[here] === null ? "before training" : `loss ${decimals(losses[here], 2)}`;
  learning.told.textContent = `${steps[here].toLocaleString("en")}: ${loss}`;
  const width = clamp(view.width * 0.55, 160, 620);
  const surface = sized(view, learning.canvas, width, LOSS.height);
  const known = losses.filter((value) => value !== null);
  const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
  const x = (n) => LOSS.left + ((width - LOSS.left - LOSS.right) * steps[n]) / Math.max(1, steps.at(-1));
  const y = (value) => 8 + ((LOSS.height - 26) * (high - value)) / (high - low || 1);
  for (const value of high > low ? [high, low] : [high]) {
    write(surface, known.length ? decimals(value, 2) : "", LOSS.left - 6, y(value), { align: "right", colour: theme.muted, size: 11, font: theme.font });
    surface.fillStyle = theme.line;
    surface.fillRect(LOSS.left, y(value), width - LOSS.left - LOSS.right, 1);
  }
  write(surface, "loss", 2, LOSS.height - 8, { colour: theme.muted, size: 11, font: theme.font });
  write(surface, `step ${steps.at(-1).toLocaleString("en")}`, width - LOSS.right, LOSS.height - 8, { align: "right", colour: theme.muted, size: 11, font: theme.font });
  surface.strokeStyle = theme.second;
  surface.lineWidth = 2;
  surface.beginPath();
  let begun = false;
  losses.forEach((value, n) => {
    if (value === null) return;
    if (begun) surface.lineTo(x(n), y(value));
    else surface.moveTo(x(n), y(value));
    begun = true;
  });
  surface.stroke();
  surface.fillStyle = theme.accent;
  surface.fillRect(x(here) - 1, 2, 2, LOSS.height - 18);
  if (losses[here] !== null) {
    surface.beginPath();
    surface.arc(x(here), y(losses[here]), 4, 0, 7);
    surface.fill();
  }
  learning.canvas.setAttribute("aria-label", known.length ? `Training loss from ${decimals(known[0], 2)} to ${decimals(known.at(-1), 2)} at step ${steps.at(-1)}` : "Training loss: nothing yet");
}
