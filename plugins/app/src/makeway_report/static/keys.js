// The keyboard.

const KEYS = [
  ["\u2190 \u2192", "earlier, later"],
  ["+ \u2212", "zoom time in, out"],
  ["Home", "all of the time, all nodes"],
  ["\u2191 \u2193", "other nodes (when the picture has the focus)"],
  ["[ ]", "fewer, more nodes"],
  ["n p", "next, previous preemption"],
  ["/", "search a job or user"],
  ["1 2 \u2026", "another run"],
  ["Esc", "close the job, leave a field"],
  ["?", "this help"],
];

function showAll() {
  show({ from: 0, to: Infinity, firstRow: 0, rows: 0 });
}

const ACTIONS = {
  ArrowLeft: () => move(-0.25),
  ArrowRight: () => move(0.25),
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  "\u2212": () => zoom(2),
  Home: showAll,
  "[": () => zoomRows(0.5),
  "]": () => zoomRows(2),
  n: () => nextPreemption(1),
  p: () => nextPreemption(-1),
  "/": () => { byId("search").focus(); byId("search").select(); },
  "?": () => { byId("help").showModal(); },
  Escape: () => selectJob(-1),
};
const ON_STAGE = { ArrowUp: () => moveRows(-0.25), ArrowDown: () => moveRows(0.25) };

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const field = event.target.closest && event.target.closest("input, select, textarea");
  if (field) {
    if (event.key === "Escape") {
      field.blur();
      byId("stage").focus({ preventScroll: true });
    }
    return;
  }
  const number_ = Number(event.key);
  let action = ACTIONS[event.key] || (document.activeElement === byId("stage") && ON_STAGE[event.key]);
  if (number_ >= 1 && number_ <= view.runs.length && view.runs.length > 1) action = () => chooseRun(number_ - 1);
  if (!action) return;
  event.preventDefault();
  action();
}

function beginKeys() {
  document.addEventListener("keydown", pressed);
  byId("keys").replaceChildren(...KEYS.flatMap(([key, text]) => [
    element("dt", {}, ...key.split(" ").map((each) => element("kbd", {}, each))), element("dd", {}, text)]));
  byId("helpbutton").addEventListener("click", () => byId("help").showModal());
  byId("closehelp").addEventListener("click", () => byId("help").close());
}
