// One job: its history, what it asked for, which it displaced, which displaced it, and why.

const OUTCOMES = ["starts", "preempts", "waits"];
const MOST_LINES = 60;

function selectJob(job) {
  show({ job, preemption: -1 });
  drawPanel();
}

/** Show a job: select it, and look at the time in which it waited and ran, if that is out of view. */
function goToJob(job) {
  const run = current();
  const from = run.submit[job];
  const to = Math.max(run.ended(job), from + 1);
  const changes = { job, preemption: -1 };
  const seen = run.firstStart(job) ?? from;
  if (seen < view.from || seen > view.to || to - from < (view.to - view.from) / 50) {
    const margin = Math.max((to - from) * 0.3, 30);
    changes.from = from - margin;
    changes.to = to + margin;
  }
  show(changes);
  drawPanel();
  byId("stage").scrollIntoView({ block: "nearest" });
}

/** Look at a preemption: both jobs, as long as the victim had run. */
function goToPreemption(i) {
  const run = current();
  if (!run.at.length) {
    byId("found").textContent = "No job was displaced in this run.";
    return;
  }
  i = (i + run.at.length) % run.at.length;
  const at = run.at[i];
  const target = run.pieceAt(run.victim[i], at, false);
  const source = run.preemptor[i] < 0 ? -1 : run.pieceAt(run.preemptor[i], at, true);
  const before = target < 0 ? 60 : at - run.start[target];
  const after = source < 0 ? before : run.stop[source] - at;
  const span = Math.max(10, Math.min(Math.max(before, after, 60), run.end));
  const wide = view.to - view.from;
  const half = wide > 40 * span || wide < span / 2 ? span * 1.6 : wide / 2;
  show({ from: at - half, to: at + half, job: run.preemptor[i] < 0 ? run.victim[i] : run.preemptor[i], preemption: i });
  drawPanel();
  byId("found").textContent = `Preemption ${number(i + 1)} of ${number(run.at.length)}.`;
}

function nextPreemption(step) {
  const run = current();
  const middle = (view.from + view.to) / 2;
  let i = view.preemption;
  if (i < 0 && view.from <= 0 && view.to >= run.end) i = step > 0 ? -1 : run.at.length;
  else if (i < 0) i = step > 0 ? upperBound(run.at, middle) - 1 : upperBound(run.at, middle - 1e-9);
  goToPreemption(i + step);
}

function search(text) {
  const run = current();
  const wanted = text.trim();
  if (!wanted) return;
  let job = run.byId.get(wanted) ?? -1;
  let note = "";
  if (job < 0) {
    const user = run.names.user.indexOf(wanted);
    if (user >= 0) {
      const jobs = [];
      for (let at = 0; at < run.count; at++) if (run.job.user[at] === user) jobs.push(at);
      const again = search.user === wanted ? jobs[(jobs.indexOf(view.job) + 1) % jobs.length] : jobs[0];
      search.user = wanted;
      job = again;
      note = `Job ${jobs.indexOf(job) + 1} of ${number(jobs.length)} of user ${wanted}; Enter shows the next.`;
    }
  }
  byId("found").textContent = job < 0 ? `No job and no user is called ${wanted}.`
    + (run.about.rest ? " Small jobs are left out of this page." : "") : note;
  if (job >= 0) goToJob(job);
}

// ------------------------------------------------------------------------------------- the panel
function drawPanel() {
  const panel = byId("job");
  if (view.job < 0) {
    panel.replaceChildren(element("h3", {}, "Which job?"),
      element("p", {}, "Click a job, search one by id or user, or go from preemption to preemption with n and p."),
      element("p", { className: "muted" }, "Press ? for all keys."));
    return;
  }
  const run = current();
  const job = view.job;
  const close = element("button", { type: "button", className: "close", "aria-label": "close the job" }, "\u00d7");
  close.addEventListener("click", () => selectJob(-1));
  panel.replaceChildren(
    close, element("h3", {}, "Job ", named(run.ids[job])), facts(run, job),
    element("h4", {}, "Where it was"), whereabouts(run, job),
    element("h4", {}, "Why it waited"), reasons(run, job),
    element("h4", {}, "What was decided, and why"), decisions(run, job),
    element("h4", {}, "What it displaced"), displaced(run, run.byPreemptor.of(job), run.victim),
    element("h4", {}, "What displaced it"), displaced(run, run.byVictim.of(job), run.preemptor),
  );
}

function facts(run, job) {
  const listed = element("dl", {});
  const put = (name, value) => { if (value !== "" && value !== null) listed.append(element("dt", {}, name), element("dd", {}, value)); };
  const first = run.firstStart(job);
  const limit = run.word("limit", job);
  put("user", named(run.word("user", job)));
  if (run.sentences[run.job.name[job]]) put("name", named(run.sentences[run.job.name[job]]));
  put("partition", named(run.word("partition", job)));
  for (const kind of ["qos", "account"]) {
    if (run.word(kind, job) !== "(none)") put(kind === "qos" ? "QOS" : kind, named(run.word(kind, job)));
  }
  put("asked for", `${count(run.job.nodes[job], "node")}, ${count(run.job.cpus[job], "core")}, `
    + (limit === "" ? "no time limit" : `at most ${duration(Number(limit))}`));
  put("submitted", instant(run.submit[job], run.about.epoch));
  put("first start", first === null ? "never" : first === run.submit[job] ? "at once" : `after ${duration(first - run.submit[job])}`);
  put("became", run.word("state", job));
  if (run.sentences[run.job.reason[job]]) put("reason", run.sentences[run.job.reason[job]]);
  if (run.job.restarts[job]) put("started again", count(run.job.restarts[job], "time"));
  if (run.job.lost[job]) put("work lost", `${hours(run.job.lost[job])} core-hours`);
  return listed;
}

function lines(listed, otherwise) {
  if (!listed.length) return element("p", { className: "muted" }, otherwise);
  const made = element("ul", {}, ...listed.slice(0, MOST_LINES));
  if (listed.length > MOST_LINES) made.append(element("li", { className: "muted" }, `and ${number(listed.length - MOST_LINES)} more`));
  return made;
}

function whereabouts(run, job) {
  const listed = Array.from(run.pieces.of(job), (piece) => {
    const what = run.gone[piece] ? "ran; this work was lost" : ["ran", "suspended", "was leaving"][run.state[piece]];
    return element("li", {}, `${instant(run.start[piece], run.about.epoch)}, ${duration(run.stop[piece] - run.start[piece])}: ${what} on ${nodesOf(run, piece)}`);
  });
  return lines(listed, "nowhere");
}

function nodesOf(run, piece) {
  const place = run.place[piece];
  const listed = [];
  for (let i = run.rangesFrom[place]; i < run.rangesFrom[place + 1]; i++) {
    const first = run.nodes[run.rangeFirst[i]];
    const last = run.nodes[run.rangeFirst[i] + run.rangeCount[i] - 1];
    const text = first === last ? first : `${first} to ${last}`;
    if (!listed.includes(text)) listed.push(text);
  }
  return listed.length > 8 ? `${listed.slice(0, 8).join(", ")} and ${listed.length - 8} more ranges` : listed.join(", ");
}

function reasons(run, job) {
  const { from, length, reason, of } = run.waits;
  const listed = Array.from(of(job), (i) => element("li", {},
    `${instant(run.submit[job] + from[i], run.about.epoch)}, ${duration(length[i])}: ${run.reasons[reason[i]]}`));
  return lines(listed, "it did not");
}

function decisions(run, job) {
  const { at, outcome, text, of } = run.told;
  const listed = Array.from(of(job), (i) => {
    const [first, ...more] = run.sentences[text[i]].split("\n");
    const made = element("li", {}, `${instant(run.submit[job] + at[i], run.about.epoch)}: `,
      element("strong", {}, OUTCOMES[outcome[i]]), first ? `: ${first}` : "");
    if (more.length) made.append(element("ul", {}, ...more.map((line) => element("li", {}, line))));
    return made;
  });
  const left = run.about.told ? "it was never tried" : "this page tells only of jobs that made others make way, or had to; makeway explain tells of every job";
  return lines(listed, left);
}

function displaced(run, places, others) {
  const listed = Array.from(places, (i) => {
    const other = others[i] < 0 ? "no job in particular" : jobLink(run, others[i]);
    const cost = run.cost[i] ? `, ${hours(run.cost[i])} core-hours lost` : "";
    return element("li", {}, `${instant(run.at[i], run.about.epoch)}: `, other, ` by ${run.modes[run.mode[i]]}${cost}; ${run.whys[run.why[i]]}`);
  });
  return lines(listed, "none");
}
