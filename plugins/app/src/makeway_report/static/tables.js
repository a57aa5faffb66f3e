// Tables of preemptions and of what they cost.

const MOST_ROWS = 10;
const MOST_VICTIMS = 20;

function head(...cells) {
  return element("thead", {}, element("tr", {}, ...cells.map((cell) =>
    (cell instanceof Node ? cell : element("th", { scope: "col" }, cell)))));
}

function row(first, ...cells) {
  return element("tr", {}, element("th", { scope: "row" }, first), ...cells.map((cell) => element("td", {}, cell)));
}

function jobLink(run, job) {
  const link = element("button", { type: "button", className: "link" }, "job ", named(run.ids[job]));
  link.addEventListener("click", () => goToJob(job));
  return link;
}

function fill(id, ...children) {
  byId(id).replaceChildren(...children);
}

function empty(text) {
  return element("tbody", {}, element("tr", {}, element("td", {}, text)));
}

// ----------------------------------------------------------------------------- which jobs displaced which
function drawMatrix() {
  const run = current();
  const kind = byId("matrixby").value;
  const cost = byId("matrixof").value === "cost";
  const cells = new Map();
  const causes = new Map();
  const victims = new Map();
  let total = 0;
  const none = "no job in particular";
  for (let i = 0; i < run.at.length; i++) {
    const cause = run.preemptor[i] < 0 ? none : run.word(kind, run.preemptor[i]);
    const victim = run.word(kind, run.victim[i]);
    const amount = cost ? run.cost[i] : 1;
    const key = JSON.stringify([victim, cause]);
    cells.set(key, (cells.get(key) || 0) + amount);
    causes.set(cause, (causes.get(cause) || 0) + amount);
    victims.set(victim, (victims.get(victim) || 0) + amount);
    total += amount;
  }
  if (!run.at.length) {
    fill("matrix", empty("No job was displaced."));
    byId("matrixnote").textContent = "";
    return;
  }
  const busiest = (map) => [...map].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  const columns = busiest(causes).slice(0, MOST_ROWS);
  const rows = busiest(victims).slice(0, MOST_ROWS);
  const text = (amount) => (amount ? (cost ? hours(amount) : number(amount)) : "");
  const most = Math.max(...cells.values(), 1);
  const corner = element("th", { scope: "col" }, "victim \\ preemptor");
  const body = rows.map((victim) => {
    const line = row(named(victim), ...columns.map((cause) => text(cells.get(JSON.stringify([victim, cause])) || 0)), text(victims.get(victim)));
    columns.forEach((cause, at) => {
      const amount = cells.get(JSON.stringify([victim, cause])) || 0;
      if (amount) line.children[at + 1].style.setProperty("--share", String(0.08 + (0.42 * amount) / most));
      if (amount) line.children[at + 1].classList.add("heat");
    });
    return line;
  });
  fill("matrix",
    head(corner, ...columns.map((cause) => element("th", { scope: "col" }, named(cause))), "all"),
    element("tbody", {}, ...body),
    element("tfoot", {}, row("all", ...columns.map((cause) => text(causes.get(cause))), text(total))));
  const shown = [...cells].filter(([key]) => {
    const [victim, cause] = JSON.parse(key);
    return rows.includes(victim) && columns.includes(cause);
  }).reduce((sum, [, amount]) => sum + amount, 0);
  byId("matrixnote").textContent = `${rows.length} of ${count(victims.size, "victim group")} and ${columns.length} of `
    + `${count(causes.size, "preemptor group")} shown, with ${text(shown) || 0} of ${text(total) || 0} `
    + (cost ? "core-hours lost" : "preemptions");
}

// --------------------------------------------------------------------------------------- rates
function drawRateTable() {
  const run = current();
  const kind = byId("matrixby").value;
  const [unit, word] = rateUnit(run.end);
  const units = Math.max(run.end / unit, 1e-9);
  const groups = new Map();
  for (let i = 0; i < run.at.length; i++) {
    const name = run.preemptor[i] < 0 ? "no job in particular" : run.word(kind, run.preemptor[i]);
    const found = groups.get(name) || { times: 0, cost: 0 };
    found.times++;
    found.cost += run.cost[i];
    groups.set(name, found);
  }
  const listed = [...groups].sort((a, b) => b[1].times - a[1].times);
  if (!listed.length) return fill("ratetable", empty("No job was displaced."));
  return fill("ratetable", head("preemptor", "preemptions", `per ${word}`, "core-hours lost", `per ${word}`),
    element("tbody", {}, ...listed.slice(0, MOST_ROWS).map(([name, each]) => row(named(name), number(each.times),
      number(each.times / units, 2), hours(each.cost), hours(each.cost / units)))));
}

// ------------------------------------------------------------------------------------ work lost
function drawLosses() {
  const run = current();
  for (const kind of ["user", "partition"]) {
    const lost = new Map();
    for (let job = 0; job < run.count; job++) {
      if (!run.job.lost[job]) continue;
      const found = lost.get(run.word(kind, job)) || { jobs: 0, lost: 0 };
      found.jobs++;
      found.lost += run.job.lost[job];
      lost.set(run.word(kind, job), found);
    }
    const all = [...lost.values()].reduce((sum, each) => sum + each.lost, 0);
    const listed = [...lost].sort((a, b) => b[1].lost - a[1].lost);
    if (!listed.length) fill(`lostby${kind}`, empty("No work was lost."));
    else {
      fill(`lostby${kind}`, head(kind, "jobs", "core-hours lost", "share"),
        element("tbody", {}, ...listed.slice(0, MOST_ROWS).map(([name, each]) => row(named(name), number(each.jobs),
          hours(each.lost), `${number((100 * each.lost) / all, 1)}%`))));
    }
    byId(`lostby${kind}note`).textContent = listed.length > MOST_ROWS ? `${MOST_ROWS} of ${listed.length} shown` : "";
  }
}

function drawVictims() {
  const run = current();
  const times = new Map();
  for (const victim of run.victim) times.set(victim, (times.get(victim) || 0) + 1);
  const listed = [...times].sort((a, b) => b[1] - a[1] || run.job.lost[b[0]] - run.job.lost[a[0]]);
  if (!listed.length) return fill("victims", empty("No job was displaced."));
  fill("victims", head("job", "user", "partition", "times", "core-hours lost", "became"),
    element("tbody", {}, ...listed.slice(0, MOST_VICTIMS).map(([job, many]) => row(jobLink(run, job), named(run.word("user", job)),
      named(run.word("partition", job)), number(many), hours(run.job.lost[job]), run.word("state", job)))));
  byId("victimsnote").textContent = `${Math.min(MOST_VICTIMS, listed.length)} of ${count(listed.length, "job")} shown`;
  return undefined;
}

function drawTables() {
  drawMatrix();
  drawRateTable();
  drawLosses();
  drawVictims();
  drawChanges();
}
