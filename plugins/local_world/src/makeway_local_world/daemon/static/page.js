// The live page: the queue, jobs over nodes, and what happens, as the daemon tells it.

const MOST_EVENTS = 200;
const STEPS_BEFORE = 500;
const MOST_ENDED = 200;
const LIVE = ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING"];
const state = { jobs: [], ended: [], reader: {}, chosen: null, last: null, control: false, ahead: 0, zero: 0 };

async function ask(path, options) {
  const response = await fetch(path, options);
  const data = await response.json();
  if (!response.ok) throw new Error(data.error || response.statusText);
  return data;
}

function make(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function nowThere() {
  return Date.now() / 1000 + state.ahead;
}

function picture() {
  drawPicture(nowThere(), state.chosen);
}

function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const rest = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  return hours ? `${hours}:${rest}` : rest;
}

/** An instant of 24 hours, with its day if that is not today. */
function clock(at) {
  if (at === null) return "";
  const two = (number) => String(number).padStart(2, "0");
  const then = new Date(at * 1000);
  const time = [then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":");
  const today = then.toDateString() === new Date().toDateString();
  return today ? time : `${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

/** Where a job is, or why it waits, and for which job it makes way; in the words of `makeway queue`. */
function place(job) {
  let why = job.reason;
  const how = job.displaced && ({ suspend: "suspended", requeue: "requeued" }[job.displaced.how] || job.displaced.how);
  if (how && job.displaced.by && job.state !== "RUNNING") why = `${how} for ${job.displaced.by}`;
  else if (job.state === "SUSPENDED" && job.suspended_by === "admin") why = "suspended by a person";
  else if (job.state === "SUSPENDED" && job.suspended_by === "use") why = "suspended: its node is in use";
  return [job.nodes, why && why !== "None" ? `(${why})` : ""].filter(Boolean).join(" ");
}

// ------------------------------------------------------------------------------------ the queue
async function refresh() {
  const found = await ask("/v1/jobs");
  state.jobs = found.jobs;
  state.ahead = found.at - Date.now() / 1000;
  byId("trouble").hidden = !found.trouble;
  byId("trouble").textContent = found.trouble ? `Nothing is started now: ${found.trouble}` : "";
  note(state.jobs, nowThere());
  drawQueue();
  picture();
  if (state.gpus) await refreshGpus();
}

/** Show the GPUs: which job of which user has each, and how much of its memory is in use. */
async function refreshGpus() {
  const about = await ask("/v1/daemon");
  const owners = new Map(state.jobs.flatMap((job) => (job.gpus || []).map((each) => [each.uuid, job])));
  const gib = (mb) => (mb / 1024).toFixed(1);
  byId("gpus").replaceChildren(...about.gpus.map((gpu) => {
    const job = owners.get(gpu.uuid);
    const item = make("li");
    item.append(make("span", `GPU ${gpu.index} ${gpu.name}`));
    item.append(make("meter", undefined, { min: "0", max: String(gpu.memory_mb || 1), value: String(gpu.used_mb), "aria-label": `memory of GPU ${gpu.index} in use` }));
    item.append(make("span", `${gib(gpu.used_mb)} of ${gib(gpu.memory_mb)} GiB`), make("span", job ? `job ${job.id} of ${job.user}` : "free", job ? {} : { class: "muted" }));
    return item;
  }));
}

/** Let one row stand for all tasks of an array that wait alike, as `makeway queue` does: each row's jobs, in order. */
function folded(jobs) {
  const rows = new Map();
  for (const job of jobs) {
    const alike = job.array !== null && job.state === "PENDING";
    const key = alike ? JSON.stringify([job.array, job.partition, job.name, job.word, job.ran, job.cpus, gpus(job), place(job), job.held, job.kept]) : job.id;
    rows.set(key, [...(rows.get(key) || []), job]);
  }
  return [...rows.values()];
}

/** Numbers as `0-3,7`. */
function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts[parts.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([low, high]) => (low === high ? String(low) : `${low}-${high}`)).join(",");
}

function drawQueue() {
  const body = document.querySelector("#queue tbody");
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.job : null;
  body.replaceChildren(...folded(state.jobs).map(row));
  byId("empty").hidden = state.jobs.length > 0;
  if (focused) body.querySelector(`tr[data-job="${CSS.escape(focused)}"]`)?.focus();
}

// ------------------------------------------------------------------------------- what has ended
async function refreshEnded() {
  const found = await ask(`/v1/history?since=${nowThere() - KEPT}&limit=${MOST_ENDED}`);
  state.ended = found.jobs.reverse();
  state.ended.forEach(noteEnded);
  drawEnded();
}

function drawEnded() {
  document.querySelector("#ended tbody").replaceChildren(...state.ended.map(endedRow));
  byId("noneended").hidden = state.ended.length > 0;
}

function endedRow(job) {
  const made = rowOf(job);
  const exit = job.exit_code === null ? "" : `${job.exit_code}:${job.exit_signal || 0}`;
  for (const text of [job.id, job.partition, job.name, job.user, job.state, exit, clock(job.started_at), clock(job.ended_at)]) made.append(make("td", text));
  made.append(make("td", span(job.ran), { class: "number" }), make("td", String(job.cpus), { class: "number" }), make("td", gpus(job)));
  return made;
}

function rowOf(job) {
  const made = make("tr", undefined, { tabindex: "0", "data-job": job.id, "aria-selected": String(job.id === state.chosen) });
  made.addEventListener("click", () => choose(job.id));
  made.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(job.id); });
  return made;
}

function row(jobs) {
  const job = jobs.find((each) => each.id === state.chosen) || jobs[0];
  const id = job.array !== null && job.state === "PENDING" ? `${job.array}_[${ranges(jobs.map((each) => each.task))}]` : job.id;
  const made = rowOf(job);
  for (const text of [id, job.partition, job.name, job.user, job.word]) made.append(make("td", text));
  made.append(make("td", span(job.ran), { class: "number" }), make("td", String(job.cpus), { class: "number" }));
  made.append(make("td", gpus(job)), make("td", place(job)));
  if (state.control) made.append(buttons(job, id, jobs.map((each) => each.id)));
  return made;
}

function buttons(job, id, ids) {
  const cell = make("td");
  if (!state.reader.operator && job.user !== state.reader.name) return cell;
  const verbs = { PENDING: job.held ? ["release", "cancel"] : ["hold", "top", "cancel"], RUNNING: ["suspend", "requeue", "cancel"],
    SUSPENDED: job.suspended_by === "admin" ? ["resume", "cancel"] : ["requeue", "cancel"] };
  const theirs = job.kept && !state.reader.operator ? ["release", "resume"] : [];  // an operator's word
  for (const verb of (verbs[job.state] || []).filter((each) => !theirs.includes(each))) {
    const button = make("button", verb, { type: "button" });
    button.addEventListener("click", (event) => { event.stopPropagation(); change(verb, id, ids); });
    cell.append(button, " ");
  }
  return cell;
}

/** GPUs that a job has, or wants: how many, and which. */
function gpus(job) {
  const count = job.node_count * Object.entries(job.gres).reduce((sum, [name, each]) => sum + (name.split(":")[0] === "gpu" ? each : 0), 0);
  const which = (job.gpus || []).map((each) => each.index ?? each.uuid).join(",");
  return count ? (which ? `${count} (${which})` : String(count)) : "";
}

/** Hand in what the form says; the same key makes no second job, should the answer be lost. */
async function submitForm(event) {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(byId("submit")));
  const request = { key: crypto.randomUUID(), command: ["/bin/sh", "-c", given.command], name: given.name || given.command.trim().split(/\s+/)[0].split("/").pop(),
    cwd: given.cwd, partitions: [given.partition], cpus_per_task: Number(given.cpus), gpus: Number(given.gpus), environment: state.environment };
  if (given.memory) request.memory_mb = Math.round(Number(given.memory) * 1024);
  if (given.minutes) request.time_limit = Number(given.minutes) * 60;
  try {
    const taken = await ask("/v1/jobs", { method: "POST", body: JSON.stringify(request) });
    byId("submitted").textContent = `submitted job ${taken.id}`;
    await refresh();
    choose(taken.id);
  } catch (error) {
    byId("submitted").textContent = error.message;
  }
}

// ----------------------------------------------------------------------------------- bookings
async function refreshBookings() {
  const found = await ask("/v1/bookings");
  const days = new Map();
  for (const booking of found.bookings) {
    for (let day = midnight(Math.max(booking.start, nowThere())); day.getTime() / 1000 < booking.end; day = midnight(day.getTime() / 1000, 1)) {
      const key = day.getTime();
      days.set(key, [...(days.get(key) || []), booking]);
    }
  }
  const drawn = [...days].sort(([first], [second]) => first - second).flatMap(([day, bookings]) => drawDay(day / 1000, bookings));
  byId("bookings").replaceChildren(...(drawn.length ? drawn : [make("p", "Nothing is booked.", { class: "muted" })]));
}

/** The begin of the day of an instant, or of one after it. */
function midnight(at, later = 0) {
  const day = new Date(at * 1000);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + later);
}

/** A day of the calendar: each booking in words, and as a bar over its 24 hours, which has a line every six. */
function drawDay(day, bookings) {
  const next = midnight(day, 1).getTime() / 1000;
  const list = make("ul");
  for (const booking of bookings) {
    const what = [[booking.gpus, "GPU"], [booking.cpus, "CPU"]].filter(([count]) => count).map(([count, name]) => `${count} ${name}${count > 1 ? "s" : ""}`);
    if (booking.memory_mb) what.push(`${+(booking.memory_mb / 1024).toFixed(1)} GiB of memory`);
    const slot = make("span", undefined, { class: "slot" });
    const [start, end] = [Math.max(booking.start, day), Math.min(booking.end, next)];
    slot.style.left = `${(100 * (start - day)) / (next - day)}%`;
    slot.style.width = `${(100 * (end - start)) / (next - day)}%`;
    const track = make("span", undefined, { class: "track", "aria-hidden": "true" });
    track.append(slot);
    const item = make("li");
    item.append(make("span", `${minute(booking.start, day)} to ${minute(booking.end, day)} ${booking.user}: ${what.join(", ")}`), track);
    if (state.control && (state.reader.operator || booking.user === state.reader.name)) {
      const button = make("button", "cancel", { type: "button", "aria-label": `cancel booking ${booking.id}` });
      button.addEventListener("click", () => book(`/v1/bookings/${booking.id}/cancel`, {}));
      item.append(button);
    }
    list.append(item);
  }
  return [make("h3", new Date(day * 1000).toDateString()), list];
}

/** An instant to the minute, with its day if that is not `day`. */
function minute(at, day) {
  const two = (number) => String(number).padStart(2, "0");
  const then = new Date(at * 1000);
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  return midnight(at).getTime() / 1000 === day ? time : `${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

async function book(path, body) {
  try {
    const told = await ask(path, { method: "POST", body: JSON.stringify(body) });
    byId("booked").textContent = `${path.endsWith("cancel") ? "cancelled" : "booked"}: ${told.id}`;
  } catch (error) {
    byId("booked").textContent = error.message;
  }
  await refreshBookings().catch(() => {});
}

function bookForm(event) {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(byId("book")));
  const at = (text) => new Date(text).getTime() / 1000;
  return book("/v1/bookings", { gpus: Number(given.gpus), cpus: Number(given.cpus), memory_mb: Math.round(Number(given.memory) * 1024), start: at(given.start), end: at(given.end) });
}

async function change(verb, id, ids) {
  if (verb === "cancel" && !confirm(`End job ${id}?`)) return;
  try {
    const answer = await ask("/v1/commands", { method: "POST", body: JSON.stringify({ verb, jobs: ids }) });
    const refused = [...new Set(Object.values(answer.refused))];
    if (refused.length) tell(refused.map((why) => `job ${id}: ${why}`));
  } catch (error) {
    tell([error.message]);
  }
}

async function choose(job) {
  state.chosen = job;
  drawQueue();
  drawEnded();
  picture();
  showOutput(job);
  try {
    tell((await ask(`/v1/jobs/${encodeURIComponent(job)}/why`)).told);
  } catch (error) {
    tell([error.message]);
  }
}

/** A job in the picture was clicked; -1: none. */
function selectJob(at) {
  if (at >= 0) choose(current().ids[at]);
  else {
    state.chosen = null;
    drawQueue();
    drawEnded();
    picture();
  }
}

/** Show what a job has printed: the end of its files, or where they are and why they cannot be shown. */
async function showOutput(job) {
  let files = [];
  try {
    files = (await ask(`/v1/jobs/${encodeURIComponent(job)}/output`)).files;
  } catch (error) {
    files = [{ path: "", why: error.message }];
  }
  if (job !== state.chosen) return;
  byId("printed").hidden = false;
  byId("output").replaceChildren(...files.flatMap((file) => {
    const path = make("p", file.path, { class: "path muted" });
    if (file.why) return [path, make("p", file.why)];
    const cut = file.size > new Blob([file.text]).size ? [make("p", `the end of ${file.size} bytes`, { class: "muted" })] : [];
    return [path, ...cut, make("pre", file.text, { tabindex: "0" })];
  }));
  if (!files.length) byId("output").replaceChildren(make("p", "It has not started yet.", { class: "muted" }));
  for (const each of byId("output").querySelectorAll("pre")) each.scrollTop = each.scrollHeight;
}

function tell(lines) {
  byId("why").replaceChildren(...lines.map((line) => make("p", line)));
}

// -------------------------------------------------------------------------------- what happens
function sentence(line) {
  const at = clock(line.at + state.zero);
  if (line.kind === "preempt") return `${at} job ${line.job} makes way for ${line.preemptor || "a person"}: ${line.mode}`;
  if (line.kind === "state") return `${at} job ${line.job}: ${line.state.toLowerCase()}`;
  if (line.kind === "rejected" || line.kind === "refused") return `${at} job ${line.job}: refused: ${line.reason}`;
  return null;
}

function listen() {
  const source = new EventSource(`/v1/events?after=${Math.max(0, state.last - STEPS_BEFORE)}`);
  let waiting = false;
  let ends = false;
  source.addEventListener("open", () => { byId("live").textContent = "live"; });
  source.addEventListener("error", () => { byId("live").textContent = "the daemon is away"; });
  source.addEventListener("step", (event) => {
    const step = JSON.parse(event.data);
    for (const line of step.lines) {
      state.zero = step.wall - line.at;
      if (line.kind === "preempt") displaced(line.job, line.preemptor, line.mode, line.at + state.zero);
      if (line.kind === "reload") refreshBookings().catch(() => {});
      if (line.kind === "state" && !LIVE.includes(line.state)) ends = true;
      const text = sentence(line);
      if (text) byId("events").prepend(make("li", text));
    }
    while (byId("events").children.length > MOST_EVENTS) byId("events").lastChild.remove();
    if (waiting) return;
    waiting = true;
    setTimeout(async () => {
      waiting = false;
      const over = ends;
      ends = false;
      await refresh().catch(() => {});
      if (over) await refreshEnded().catch(() => {});
    }, 100);
  });
}

function layout() {
  const width = byId("stage").clientWidth;
  if (!width) return;
  gantt.resize(width);
  redraw();
}

async function begin() {
  const about = await ask("/v1/daemon");
  state.last = about.sequence;
  state.control = about.control;
  state.reader = about.reader;
  state.gpus = about.gpus.length > 0;
  byId("withgpus").hidden = !state.gpus;
  byId("doing").hidden = byId("submitting").hidden = byId("book").hidden = !about.control;
  state.environment = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: about.reader.home, USER: about.reader.name };
  byId("submit").elements.cwd.value = about.reader.home;
  byId("submit").elements.partition.replaceChildren(...about.partitions.map((name) => make("option", name)));
  byId("cluster").textContent = about.cluster;
  byId("policy").textContent = about.policy.preempt;
  Object.assign(live, {
    nodes: about.nodes, partitions: about.partitions, label: about.cluster || "this machine",
    zero: Math.floor(Date.now() / 1000) - KEPT, span: Number(byId("span").value),
  });
  gantt.least = Math.min(480, Math.max(130, about.nodes.reduce((sum, [, cpus]) => sum + cpus, 0) * 22));
  theme.read();
  view.runs = [liveRun(nowThere())];
  gantt.begin();
  view.listeners.push(() => Object.assign(byId("gantt").dataset, { drawn: gantt.pieces, arrows: gantt.arrows }));
  await refresh();
  await refreshEnded();
  await refreshBookings();
  layout();
  listen();
  byId("submit").addEventListener("submit", submitForm);
  byId("book").addEventListener("submit", bookForm);
  byId("again").addEventListener("click", () => showOutput(state.chosen));
  byId("span").addEventListener("change", (event) => {
    live.span = Number(event.target.value);
    follow();
    picture();
  });
  byId("now").addEventListener("click", () => {
    follow();
    picture();
  });
  for (const [id, amount] of [["zoomin", 0.5], ["zoomout", 2]]) {
    byId(id).addEventListener("click", () => {
      zoomLive(amount);
      byId("span").value = String(live.span);  // none, where no choice is so long
      picture();
    });
  }
  byId("theme").addEventListener("click", () => { theme.next(); picture(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme.read(); hatches.clear(); picture(); });
  new ResizeObserver(layout).observe(byId("stage"));
  setInterval(() => { if (!document.hidden && state.jobs.some((job) => job.nodes)) tickAll(); }, 1000);
  setInterval(() => { if (!document.hidden && state.gpus) refreshGpus().catch(() => {}); }, 5000);
}

/** Let the times of running jobs go on between two events. */
function tickAll() {
  for (const job of state.jobs) {
    if (job.state !== "RUNNING") continue;
    job.ran += 1;
    const cell = document.querySelector(`tr[data-job="${CSS.escape(job.id)}"] td.number`);
    if (cell) cell.textContent = span(job.ran);
  }
  picture();
}

begin().catch((error) => { byId("live").textContent = error.message; });
