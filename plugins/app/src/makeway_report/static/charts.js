// Line charts, drawn by uPlot: cores and jobs over time, distributions, preemptions per day.

const DASH = [6, 4];
const MOST_POINTS = 1200;

/** What all charts have in common. */
function chartOptions(width, height, series, more = {}) {
  const axis = { stroke: () => theme.muted, grid: { stroke: () => theme.line, width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif" };
  return {
    width, height, series, legend: { show: false }, padding: [8, 1, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    ...more,
    axes: (more.axes || [{}, {}]).map((each) => ({ ...axis, ...each })),
  };
}

/** The axis of every chart over time: the span in view, with dates. */
function timeAxis() {
  const marks = (u) => ticks(u.scales.x.min, u.scales.x.max, u.bbox.width / devicePixelRatio, current().about.epoch);
  return { size: 24, splits: (u) => marks(u).at,
    values: (u, splits) => splits.map((at) => tickText(at, marks(u).step, current().about.epoch)) };
}

// ------------------------------------------------------------------------------- over time
const charts = {
  made: [],

  begin() {
    view.listeners.push(() => this.draw());
  },

  resize(width) {
    for (const chart of this.made) chart.destroy();
    const stroke = (at) => () => (at ? runColour(at) : theme.accent);
    const time = timeAxis();
    const others = view.runs.slice(1).map((_, at) => ({ stroke: stroke(at + 1), width: 1.2, dash: DASH }));
    const common = {
      axes: [time, { size: GUTTER, gap: 5 }],
      bands: [{ series: [3, 2], fill: () => `${theme.accent}38` }],
      hooks: { setSelect: [(u) => this.selected(u)] },
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
    };
    const band = { width: 0, stroke: "transparent" };
    const series = (extra) => [{}, { stroke: () => theme.accent, width: 1.6 }, band, band, ...extra, ...others];
    const inner = Math.max(GUTTER + 60, Math.floor(width));
    this.made = [
      new uPlot(chartOptions(inner, 132, series([]), common), null, byId("cores")),
      new uPlot(chartOptions(inner, 132, series([{ stroke: () => theme.fg, width: 1.4, dash: [2, 3] }]), common), null, byId("queue")),
    ];
    this.points = Math.max(50, Math.min(MOST_POINTS, inner - GUTTER));
    drawRunsLegend();
  },

  selected(u) {
    if (u.select.width < 4) return;
    const from = u.posToVal(u.select.left, "x");
    const to = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    show({ from, to });
  },

  draw() {
    const run = current();
    const others = view.runs.filter((each) => each !== run);
    const step = (view.to - view.from) / this.points;
    const x = Array.from({ length: this.points }, (_, at) => view.from + (at + 0.5) * step);
    const means = (series, rest) => x.map((at) =>
      series.mean(at - step / 2, at + step / 2) + (rest ? rest.mean(at - step / 2, at + step / 2) : 0));
    const ranges = (series, rest) => {
      const low = [];
      const high = [];
      for (const at of x) {
        const more = rest ? rest.mean(at - step / 2, at + step / 2) : 0;
        const [least, most] = series.range(at - step / 2, at + step / 2);
        low.push(least + more);
        high.push(most + more);
      }
      return [low, high];
    };
    const s = run.series;
    const data = [
      [x, means(s.cores, s.restCores), ...ranges(s.cores, s.restCores),
        ...others.map((each) => means(each.series.cores, each.series.restCores))],
      [x, means(s.waiting, s.restWaiting), ...ranges(s.waiting, s.restWaiting), means(s.suspended),
        ...others.map((each) => means(each.series.waiting, each.series.restWaiting))],
    ];
    this.made.forEach((chart, at) => {
      chart.setData(data[at], false);
      chart.batch(() => {
        chart.setScale("x", { min: view.from, max: view.to });
        const all = data[at].slice(1).flat();
        chart.setScale("y", { min: 0, max: Math.max(1, all.reduce((most, each) => Math.max(most, each), 0) * 1.05) });
      });
    });
    this.last = { cores: data[0][1], waiting: data[1][1], suspended: data[1][4] };
  },
};

function drawRunsLegend() {
  const others = view.runs.filter((run) => run !== current());
  const items = [current(), ...others].map((run, at) => {
    const line = element("span", { className: at ? "dash" : "solid", "aria-hidden": "true" });
    line.style.borderColor = at ? runColour(at) : theme.accent;
    return element("li", {}, line, `${run.letter}: `, named(run.label));
  });
  byId("runslegend").replaceChildren(...items);
  byId("runslegend").hidden = !others.length;
}

// --------------------------------------------------------------------------- distributions
const WAITS = { 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36000: "10 h", 86400: "1 d", 864000: "10 d", 8640000: "100 d" };

const curves = {
  made: [],

  begin() {
    byId("curvesby").addEventListener("change", () => this.draw());
  },

  draw() {
    for (const chart of this.made) chart.destroy();
    const kind = byId("curvesby").value;
    const width = Math.floor(byId("waits").clientWidth);
    this.made = [
      this.chart("waits", width, (about) => about.waits[kind], Object.keys(WAITS).map(Number), (at) => WAITS[at]),
      this.chart("slowdowns", width, (about) => about.slowdowns[kind], [1, 10, 100, 1000, 1e4, 1e5, 1e6], (at) => `${number(at)}\u00d7`),
    ];
  },

  /** Per cent of jobs at most so much: the groups of the run in view, and other runs as a whole, dashed. */
  chart(id, width, of, splits, text) {
    const own = of(current().about) || [];
    const lines = own.map((curve, at) => ({
      curve, colour: curve.name === "others" && at === own.length - 1 ? OTHERS : PALETTE[at % MOST_COLOURS], name: curve.name,
    }));
    const others = view.runs.filter((run) => run !== current());
    others.forEach((run, number_) => {
      for (const [at, curve] of (of(run.about) || []).entries()) {
        const same = lines.find((line) => line.name === curve.name && !line.dash);
        lines.push({ curve, colour: same ? same.colour : OTHERS, name: `${curve.name}, ${run.letter}`, dash: number_ ? [2, 3] : DASH });
      }
    });
    const high = lines.reduce((most, { curve }) => Math.max(most, curve.at[curve.at.length - 1]), 10) * 1.1;
    const table = uPlot.join([[[1], [null]], ...lines.map(({ curve }) => stairs(curve, high))]);
    const marks = splits.filter((at) => at <= high);
    const series = [{}, {}, ...lines.map((line) => ({
      stroke: line.colour, width: 1.8, dash: line.dash, spanGaps: true, points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }),
    }))];
    const chart = new uPlot(chartOptions(width, 240, series, {
      scales: { x: { time: false, distr: 3, log: 10, range: [1, high] }, y: { range: [0, 100] } },
      axes: [{ splits: () => marks, filter: (u, at) => at, grid: { stroke: () => theme.line, width: 1, filter: (u, at) => at },
        values: () => marks.map(text), space: 0, size: 26 },
      { size: 46, values: (u, splits) => splits.map((at) => `${at}%`) }],
      cursor: { show: false },
    }), table, byId(id));
    byId(`${id}legend`).replaceChildren(...lines.map((line) => {
      const sample = element("span", { className: line.dash ? "dash" : "solid", "aria-hidden": "true" });
      sample.style.borderColor = line.colour;
      return element("li", {}, sample, named(line.name), ` ${number(line.curve.jobs)}`);
    }));
    return chart;
  },
};

/** Points of a distribution function; what is less than one is shown at one. */
function stairs({ at: values, jobs }, high) {
  const x = [];
  const y = [];
  const last = values.length - 1;
  values.forEach((value, at) => {
    const place = Math.max(1, value);
    const before = last ? Math.floor((at * (jobs - 1)) / last) : jobs - 1;
    const share = (100 * (before + 1)) / jobs;
    if (x.length && x[x.length - 1] === place) y[y.length - 1] = share;
    else {
      x.push(place);
      y.push(share);
    }
  });
  if (x[x.length - 1] < high) {
    x.push(high);
    y.push(100);
  }
  return [x, y];
}

// ------------------------------------------------------------------------ preemptions per day
/** Per day, or per hour where there are few days. */
function rateUnit(end) {
  return end > 2 * 86400 ? [86400, "day"] : [3600, "hour"];
}

const rates = {
  chart: null,

  begin() {
    view.listeners.push(() => this.chart && this.chart.setScale("x", { min: view.from, max: view.to }));
  },

  draw() {
    if (this.chart) this.chart.destroy();
    const width = Math.max(GUTTER + 60, Math.floor(byId("stage").clientWidth));
    const end = Math.max(...view.runs.map((run) => run.end), 1);
    const [unit, word] = rateUnit(end);
    const units = Math.max(1, Math.ceil(end / unit));
    const step = Math.max(1, Math.ceil(units / 400));
    const bins = Math.ceil(units / step);
    const x = Array.from({ length: bins + 1 }, (_, at) => at * step * unit);
    const order = [current(), ...view.runs.filter((run) => run !== current())];
    const lines = order.map((run) => {
      const y = new Array(bins + 1).fill(0);
      for (const at of run.at) y[Math.min(bins - 1, Math.floor(at / unit / step))] += 1 / step;
      y[bins] = y[bins - 1];
      return y;
    });
    const stepped = uPlot.paths.stepped({ align: 1 });
    const series = [{}, ...order.map((_, at) => ({
      stroke: () => (at ? runColour(at) : theme.arrow), width: at ? 1.2 : 1.6, dash: at ? DASH : undefined,
      fill: at ? undefined : () => `${theme.arrow}30`, paths: stepped, points: { show: false },
    }))];
    this.chart = new uPlot(chartOptions(width, 190, series, {
      scales: { x: { time: false, range: () => [view.from, view.to] }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
      axes: [timeAxis(), { size: GUTTER, gap: 5 }],
      cursor: { show: false },
    }), [x, ...lines], byId("rates"));
    byId("ratesnote").textContent = `preemptions per ${word}` + (step === 1 ? "" : `, mean of ${step} ${word}s each`);
    if (order.length > 1) byId("ratesnote").textContent += `; solid: ${current().letter}, other runs dashed`;
  },
};
