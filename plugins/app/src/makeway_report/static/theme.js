// Colours: Okabe and Ito's, which differ for everybody; vermillion is kept for lost work.

const PALETTE = ["#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#f0e442"];
const OTHERS = "#8d8d8d";
const LOST_COLOUR = "#d55e00";
const SUSPENDED_COLOUR = "#6b7480";
const MOST_COLOURS = PALETTE.length;
const RUNS = ["#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** The line colour of the second run, the third, ... */
function runColour(at) {
  return RUNS[(at - 1) % RUNS.length];
}

const theme = {
  fg: "", muted: "", line: "", bg: "", accent: "", card: "",

  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["fg", "muted", "line", "bg", "accent", "card", "arrow"]) {
      this[name] = style.getPropertyValue(`--${name}`).trim();
    }
  },

  next() {
    const order = ["auto", "light", "dark"];
    const now = document.documentElement.dataset.theme || "auto";
    this.set(order[(order.indexOf(now) + 1) % order.length]);
  },

  set(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    byId("theme").textContent = `colours: ${name}`;
    this.read();
    hatches.clear();
  },
};

/** Red, green and blue from 0 to 1. */
function parts(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
}

function darkText(colour) {
  const [r, g, b] = parts(colour).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
}

const hatches = new Map();

/** A pattern of slanted lines. */
function hatch(context, back, front, size = 7) {
  const key = `${back}${front}${size}`;
  if (!hatches.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    if (back) {
      pen.fillStyle = back;
      pen.fillRect(0, 0, size, size);
    }
    pen.strokeStyle = front;
    pen.lineWidth = 1.4;
    pen.beginPath();
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift - 1, size + 1);
      pen.lineTo(shift + size + 1, -1);
    }
    pen.stroke();
    hatches.set(key, context.createPattern(tile, "repeat"));
  }
  return hatches.get(key);
}

/** What gets which colour when jobs are coloured by something. */
function colouring(run, kind) {
  const names = run.names[kind];
  const many = new Float64Array(names.length);
  for (const each of run.job[kind]) many[each]++;
  const order = names.map((_, at) => at).sort((a, b) => many[b] - many[a] || a - b);
  const shown = order.slice(0, MOST_COLOURS);
  if (kind === "partition" || kind === "side") {
    const tier = (at) => run.about.tiers[names[at]] ?? 0;
    shown.sort((a, b) => tier(b) - tier(a) || many[b] - many[a]);
  }
  const colours = names.map(() => OTHERS);
  const planeOf = new Uint8Array(names.length).fill(shown.length);
  shown.forEach((name, at) => {
    colours[name] = PALETTE[at];
    planeOf[name] = at;
  });
  const legend = shown.map((name) => [names[name], colours[name]]);
  if (order.length > MOST_COLOURS) legend.push([`${order.length - MOST_COLOURS} others`, OTHERS]);
  const planes = [...shown.map((name) => colours[name]), OTHERS];
  return { colours, legend, planes, planeOf, of: (job) => colours[run.job[kind][job]] };
}
