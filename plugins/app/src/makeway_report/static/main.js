// Put it together.

function chooseRun(number_) {
  const id = view.job >= 0 ? current().ids[view.job] : null;
  const job = id === null ? -1 : view.runs[number_].byId.get(id) ?? -1;
  view.run = number_;
  show({ job, preemption: -1 });
  begunRun();
}

/** Draw what depends on the run alone. */
function begunRun() {
  document.querySelectorAll("#runs button").forEach((button, at) => button.setAttribute("aria-pressed", String(at === view.run)));
  const about = current().about;
  byId("size").textContent = `${count(about.jobs, "job")} of ${about.workload} on ${count(current().nodes.length, "node")}, `
    + `${count(about.cores, "core")}, ${duration(current().end)}`;
  byId("coarse").hidden = !about.rest;
  if (about.rest) {
    byId("coarse").textContent = `${number(about.rest.jobs)} small jobs are not drawn one by one and cannot be searched; `
      + "they are part of all sums, of cores in use and of jobs waiting.";
  }
  layout();
  drawTables();
  drawPanel();
}

function layout() {
  const width = byId("stage").clientWidth;
  if (!width) return;
  gantt.resize(width);
  strip.resize(width);
  charts.resize(width);
  curves.draw();
  rates.draw();
  redraw();
}

function listen() {
  byId("theme").addEventListener("click", () => { theme.next(); begunRun(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme.read(); hatches.clear(); begunRun(); });
  byId("by").addEventListener("change", (event) => show({ by: event.target.value }));
  byId("zoomin").addEventListener("click", () => zoom(0.5));
  byId("zoomout").addEventListener("click", () => zoom(2));
  byId("all").addEventListener("click", showAll);
  byId("previous").addEventListener("click", () => nextPreemption(-1));
  byId("next").addEventListener("click", () => nextPreemption(1));
  byId("fewer").addEventListener("click", () => zoomRows(0.5));
  byId("more").addEventListener("click", () => zoomRows(2));
  byId("up").addEventListener("click", () => moveRows(-0.5));
  byId("down").addEventListener("click", () => moveRows(0.5));
  byId("nodefilter").addEventListener("input", (event) => show({ filter: event.target.value, firstRow: 0, rows: 0 }));
  byId("searchform").addEventListener("submit", (event) => {
    event.preventDefault();
    search(byId("search").value);
  });
  for (const id of ["matrixby", "matrixof"]) byId(id).addEventListener("change", () => { drawMatrix(); drawRateTable(); });
  document.querySelectorAll("#runs button").forEach((button, at) => button.addEventListener("click", () => chooseRun(at)));
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === address()) return;
    restore(location.hash.slice(1));
    begunRun();
  });
  let width = byId("stage").clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(byId("stage").clientWidth - width) < 2) return;
    width = byId("stage").clientWidth;
    layout();
  }).observe(byId("stage"));
  view.listeners.push(() => {
    byId("by").value = view.by;
    if (byId("nodefilter").value !== view.filter) byId("nodefilter").value = view.filter;
  });
}

/** For tests: what is shown, and where. */
window.makeway = {
  state: () => ({
    run: current().label, from: view.from, to: view.to, by: view.by, filter: view.filter, rows: view.rows, firstRow: view.firstRow,
    job: view.job < 0 ? null : current().ids[view.job], preemption: view.preemption,
    drawn: gantt.drawn, pieces: gantt.pieces, arrows: gantt.arrows, colours: gantt.colours && gantt.colours.legend,
    jobs: current().about.jobs, listed: current().count, preemptions: current().at.length, frames: timings.frames, frame: timings.last,
    charts: charts.last, end: current().end, theme: document.documentElement.dataset.theme || "auto",
  }),
  /** Where a job is drawn now, in pixels of the page's window; null: it is not in view. */
  whereIs: (id) => {
    const run = current();
    const box = gantt.canvas.getBoundingClientRect();
    for (const piece of run.pieces.of(run.byId.get(id))) {
      const from = Math.max(run.start[piece], view.from);
      const to = Math.min(run.stop[piece], view.to);
      const y = gantt.middle(run, piece);
      if (to > from && y !== null) return { x: box.left + gantt.x((from + to) / 2), y: box.top + y, from: run.start[piece], to: run.stop[piece] };
    }
    return null;
  },
  box: (id) => byId(id).getBoundingClientRect().toJSON(),
};

async function begin() {
  const abouts = JSON.parse(byId("about").textContent);
  for (const [at, about] of abouts.entries()) {
    const block = byId(`data${at}`);
    const bytes = await inflate(block.textContent);
    block.remove();
    const run = new Run(about, unpack(bytes, about.columns), at);
    run.series = seriesOf(run);
    view.runs.push(run);
  }
  theme.read();
  const main = byId("main");
  main.hidden = false;
  byId("loading").remove();
  for (const select of ["by", "matrixby"]) {
    // What this policy looks at may be none of the usual: queues, cohorts.
    if (defaultKind() === "side") byId(select).prepend(element("option", { value: "side" }, view.runs[0].about.policy.displaces_by));
    byId(select).value = defaultKind();
  }
  if (!["partition", "qos", "user"].includes(defaultKind())) byId("curvesby").value = "partition";
  else byId("curvesby").value = defaultKind();
  gantt.begin();
  strip.begin();
  charts.begin();
  curves.begin();
  rates.begin();
  beginKeys();
  listen();
  restore(location.hash.slice(1));
  begunRun();
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = "true"; }));
}

begin().catch((error) => {
  const place = byId("loading") || byId("coarse");
  place.hidden = false;
  place.textContent = `This page cannot be shown: ${error.message || error}. It needs a browser of 2023 or later.`;
  document.documentElement.dataset.ready = "failed";
  throw error;
});
