// Feed the picture of the report page with what the daemon tells: jobs over nodes, as they run now.

const KEPT = 86400;
const live = { bars: new Map(), preemptions: [], zero: 0, nodes: [], partitions: [], label: "", span: 300, following: true, shown: null };

/** Take note of who runs, is suspended or is leaving at an instant, and where. */
function note(jobs, now) {
  const there = new Set();
  for (const job of jobs) {
    if (!job.nodes) continue;
    const key = `${job.id}.${job.incarnation}`;
    there.add(key);
    const bars = live.bars.get(key) || [];
    const last = bars[bars.length - 1];
    if (!last || last.state !== job.state) {
      if (last) last.until = now;
      const bar = (state, from) => ({ job, state, ranges: rangesOf(job), from, until: null, gone: false });
      if (last) bars.push(bar(job.state, now));
      else bars.push(...begun(job, now).map(([state, from]) => bar(state, from)));
      for (let at = 1; at < bars.length; at++) bars[at - 1].until = bars[at].from;
    }
    live.bars.set(key, bars);
  }
  for (const [key, bars] of live.bars) {
    const last = bars[bars.length - 1];
    if (!there.has(key) && last.until === null) last.until = now;
    if (last.until !== null && last.until < now - KEPT) live.bars.delete(key);
  }
  live.preemptions = live.preemptions.filter((each) => each.at >= now - KEPT);
}

/** Take note of a job that ended before anybody looked: where its last start ran, and when it was suspended. */
function noteEnded(job) {
  const key = `${job.id}.${job.incarnation}`;
  if (live.bars.has(key) || job.started_at === null || !job.nodes) return;
  const bars = [];
  const bar = (state, from, until) => bars.push({ job, state, ranges: rangesOf(job), from, until, gone: false });
  let from = job.started_at;
  for (const [stopped, resumed] of job.suspensions) {
    bar("RUNNING", from, stopped);
    bar("SUSPENDED", stopped, resumed);
    from = resumed;
  }
  bar("RUNNING", from, job.ended_at);
  live.bars.set(key, bars);
}

/** What is known of a job that is seen for the first time: it ran until it was suspended. */
function begun(job, now) {
  const from = Math.max(live.zero, job.started_at ?? now);
  if (job.state !== "SUSPENDED" || !(job.suspended_at > from)) return [[job.state, from]];
  return [["RUNNING", from], ["SUSPENDED", job.suspended_at]];
}

/** A job was told to make way; by requeue or cancel its work is lost. */
function displaced(victim, preemptor, mode, at) {
  live.preemptions.push({ victim, preemptor, mode, at });
  if (mode !== "requeue" && mode !== "cancel") return;
  for (const bars of live.bars.values()) {
    const until = bars[bars.length - 1].until ?? Infinity;
    if (bars[0].job.id === victim && bars[0].from <= at && at <= until) for (const bar of bars) bar.gone = true;
  }
}

/** Where a job is: numbers of nodes, and which part of each from its upper edge. */
function rangesOf(job) {
  const found = [];
  const held = job.cores || Object.fromEntries(live.nodes.filter(([name]) => name === job.nodes).map(([name]) => [name, ""]));
  for (const [name, text] of Object.entries(held)) {
    const node = live.nodes.findIndex(([each]) => each === name);
    if (node < 0) continue;
    const all = Math.max(1, live.nodes[node][1]);
    for (const part of text ? text.split(",") : [`0-${all - 1}`]) {
      const [first, last = first] = part.split("-").map(Number);
      const top = Math.floor((first * WHOLE) / all);
      found.push([node, top, Math.max(1, Math.floor(((last + 1) * WHOLE) / all) - top)]);
    }
  }
  return found;
}

/** All that is known as a run of the report page, which ends now. */
function liveRun(now) {
  const bars = [...live.bars.values()].flat().sort((one, other) => one.from - other.from);
  const ids = [...new Set(bars.map((bar) => bar.job.id))];
  const at = new Map(ids.map((id, number_) => [id, number_]));
  const jobs = new Map(bars.map((bar) => [bar.job.id, bar.job]));
  const partitions = [...live.partitions];
  const users = [];
  const numbered = (names, name) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
  const ranges = bars.map((bar) => bar.ranges);
  const flat = ranges.flat();
  const none = () => [];
  const zeros = (list) => list.map(() => 0);
  const told = live.preemptions.filter((each) => at.has(each.victim)).sort((one, other) => one.at - other.at);
  const states = { RUNNING: STATE.RUNNING, SUSPENDED: STATE.SUSPENDED };
  const columns = {
    nodes: live.nodes.map(([name]) => name), nodeCpus: live.nodes.map(([, cpus]) => cpus),
    ids, submit: zeros(ids), ended: zeros(ids),
    job_partition: ids.map((id) => numbered(partitions, jobs.get(id).partition)),
    job_user: ids.map((id) => numbered(users, jobs.get(id).user)),
    partitionNames: partitions, userNames: users,
    start: bars.map((bar) => bar.from - live.zero), length: bars.map((bar) => Math.max(0, (bar.until ?? now) - bar.from)),
    pieceJob: bars.map((bar) => at.get(bar.job.id)),
    pieceState: bars.map((bar) => (states[bar.state] ?? STATE.COMPLETING) + (bar.gone ? LOST : 0)),
    pieceRestart: bars.map((bar) => bar.job.requeues),
    place: zeros(bars), placeRanges: ranges.map((each) => each.length), placeCores: bars.map((bar) => bar.job.cpus),
    rangeFirst: flat.map(([node]) => node), rangeCount: flat.map(() => 1),
    rangeTop: flat.map(([, top]) => top), rangeHeight: flat.map(([, , height]) => height),
    sentences: none(), reasons: none(), modes: [...new Set(told.map((each) => each.mode))], whys: [""],
    waitFrom: none(), waitLength: none(), waitReason: none(), waitJob: none(),
    toldAt: none(), toldOutcome: none(), toldText: none(), toldJob: none(),
    preemptAt: told.map((each) => each.at - live.zero), preemptor: told.map((each) => at.get(each.preemptor) ?? -1),
    victim: told.map((each) => at.get(each.victim)), preemptMode: zeros(told), preemptWhy: zeros(told), preemptLost: zeros(told),
  };
  // The first partition has the first colour, whoever runs.
  const tiers = Object.fromEntries(live.partitions.map((name, rank) => [name, live.partitions.length - rank]));
  const cores = live.nodes.reduce((sum, [, cpus]) => sum + cpus, 0);
  return new Run({
    label: live.label, end: now - live.zero, unit: 1, epoch: live.zero, tiers, jobs: ids.length, cores, rest: null,
    policy: { displaces_by: "partition" },
  }, columns, 0);
}

/** Draw what is known; the end of the picture goes with the time until somebody looks elsewhere. */
function drawPicture(now, job) {
  const run = liveRun(now);
  const moved = live.shown !== null && (Math.abs(view.to - live.shown) > 0.01 || Math.abs(view.to - view.from - live.span) > 0.01);
  if (moved) live.following = false;
  byId("now").hidden = live.following;
  view.runs = [run];
  view.job = run.byId.get(job) ?? -1;
  chosen = { filter: null, run: -1, nodes: [], before: null };
  gantt.kind = gantt.relatedOf = "";
  if (live.following) {
    Object.assign(view, { from: run.end - live.span, to: run.end });
    live.shown = view.to;
  }
  settleRows();
  redraw();
}

function follow() {
  Object.assign(live, { following: true, shown: null });
}

/** Show more or less time: up to now, or around the middle of what somebody looks at. */
function zoomLive(amount) {
  if (!live.following) {
    zoom(amount);
    return;
  }
  live.span = Math.min(KEPT, Math.max(10, live.span * amount));
  live.shown = null;
}
