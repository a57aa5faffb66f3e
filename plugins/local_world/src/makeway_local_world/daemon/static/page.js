// The live page: the queue, jobs over cores, and what happens, as the daemon tells it.
"use strict";

const byId = (id) => document.getElementById(id);
const COLOURS = ["#0969da", "#bf3989", "#1a7f37", "#9a6700", "#8250df", "#cf222e", "#57606a", "#0a7ea4"];
const MOST_EVENTS = 200;
const state = { jobs: [], bars: new Map(), open: new Map(), chosen: null, last: null, control: false, ahead: 0, rows: new Map() };

async function ask(path, options) {
  const response = await fetch(path, options);
  const data = await response.json();
  if (!response.ok) throw new Error(data.error || response.statusText);
  return data;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function colourOf(partition) {
  const names = state.partitions || [];
  const at = names.indexOf(partition);
  return COLOURS[(at < 0 ? names.length : at) % COLOURS.length];
}

function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const rest = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  return hours ? `${hours}:${rest}` : rest;
}

function place(job) {
  const by = job.displaced && job.displaced.by && job.state !== "RUNNING" ? `${job.displaced.how} for ${job.displaced.by}` : job.reason;
  return [job.nodes, by && by !== "None" ? `(${by})` : ""].filter(Boolean).join(" ");
}

// ------------------------------------------------------------------------------------ the queue
async function refresh() {
  const found = await ask("/v1/jobs");
  state.jobs = found.jobs;
  state.ahead = found.at - Date.now() / 1000;
  byId("trouble").hidden = !found.trouble;
  byId("trouble").textContent = found.trouble ? `Nothing is started now: ${found.trouble}` : "";
  note();
  drawQueue();
  drawGantt();
}

function drawQueue() {
  const body = document.querySelector("#queue tbody");
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.job : null;
  body.replaceChildren(...state.jobs.map(row));
  byId("empty").hidden = state.jobs.length > 0;
  if (focused) body.querySelector(`tr[data-job="${CSS.escape(focused)}"]`)?.focus();
}

function row(job) {
  const made = element("tr", undefined, { tabindex: "0", "data-job": job.id, "aria-selected": String(job.id === state.chosen) });
  for (const text of [job.id, job.partition, job.name, job.user, job.word]) made.append(element("td", text));
  made.append(element("td", span(job.ran), { class: "number" }), element("td", String(job.cpus), { class: "number" }));
  made.append(element("td", place(job)));
  if (state.control) made.append(buttons(job));
  made.addEventListener("click", () => choose(job.id));
  made.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(job.id); });
  return made;
}

function buttons(job) {
  const cell = element("td");
  const verbs = { PENDING: job.held ? ["release", "cancel"] : ["hold", "top", "cancel"], RUNNING: ["suspend", "requeue", "cancel"],
    SUSPENDED: job.suspended_by === "admin" ? ["resume", "cancel"] : ["requeue", "cancel"] };
  for (const verb of verbs[job.state] || []) {
    const button = element("button", verb, { type: "button" });
    button.addEventListener("click", (event) => { event.stopPropagation(); change(verb, job.id); });
    cell.append(button, " ");
  }
  return cell;
}

async function change(verb, job) {
  if (verb === "cancel" && !confirm(`End job ${job}?`)) return;
  try {
    const answer = await ask("/v1/commands", { method: "POST", body: JSON.stringify({ verb, jobs: [job] }) });
    const why = answer.refused[job];
    if (why) tell([`job ${job}: ${why}`]);
  } catch (error) {
    tell([error.message]);
  }
}

async function choose(job) {
  state.chosen = job;
  drawQueue();
  try {
    tell((await ask(`/v1/jobs/${encodeURIComponent(job)}/why`)).told);
  } catch (error) {
    tell([error.message]);
  }
}

function tell(lines) {
  byId("why").replaceChildren(...lines.map((line) => element("p", line)));
}

// ----------------------------------------------------------------------------- jobs over cores
/** Take note of who runs and who is suspended now, on which rows. */
function note() {
  const now = Date.now() / 1000 + state.ahead;
  const there = new Set();
  for (const job of state.jobs) {
    if (!job.nodes) continue;
    const rows = rowsOf(job);
    const key = `${job.id}.${job.incarnation}`;
    there.add(key);
    const bars = state.bars.get(key) || [];
    const last = bars[bars.length - 1];
    if (!last || last.state !== job.state) {
      if (last) last.until = now;
      const from = last ? now : job.started_at ?? now;
      bars.push({ id: job.id, rows, state: job.state, partition: job.partition, from, until: null });
    }
    state.bars.set(key, bars);
  }
  for (const [key, bars] of state.bars) {
    const last = bars[bars.length - 1];
    if (!there.has(key) && last.until === null) last.until = now;
    if (last.until !== null && last.until < now - 86400) state.bars.delete(key);
  }
}

function rowsOf(job) {
  const cores = job.cores || Object.fromEntries([[job.nodes, `0-${Math.max(0, job.cpus - 1)}`]]);
  const found = [];
  for (const [node, text] of Object.entries(cores)) {
    for (const part of text.split(",")) {
      const [first, last] = part.split("-").map(Number);
      for (let core = first; core <= (last ?? first); core++) found.push(rowOf(`${node}:${core}`));
    }
  }
  return found;
}

function rowOf(name) {
  if (!state.rows.has(name)) state.rows.set(name, state.rows.size);
  return state.rows.get(name);
}

function drawGantt() {
  const canvas = byId("gantt");
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, rows = Math.max(1, state.rows.size);
  const height = Math.max(60, Math.min(480, rows * 22)) + 20;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, height);
  const now = Date.now() / 1000 + state.ahead, length = Number(byId("span").value);
  const x = (at) => ((at - (now - length)) / length) * width;
  const tall = (height - 20) / rows;
  const ink = getComputedStyle(document.body).color;
  pen.font = "12px system-ui";
  let drawn = 0;
  for (const bars of state.bars.values()) {
    for (const bar of bars) {
      const left = Math.max(0, x(bar.from)), right = Math.min(width, x(bar.until ?? now));
      if (right <= 0 || right <= left) continue;
      drawn += 1;
      for (const at of bar.rows) {
        pen.fillStyle = colourOf(bar.partition);
        pen.globalAlpha = bar.state === "SUSPENDED" ? 0.25 : 0.85;
        pen.fillRect(left, at * tall + 1, Math.max(1, right - left), tall - 2);
        pen.globalAlpha = 1;
        if (bar.state === "SUSPENDED") hatch(pen, left, at * tall + 1, right - left, tall - 2, ink);
        if (right - left > 24 && tall > 12) {
          pen.fillStyle = bar.state === "SUSPENDED" ? ink : "#fff";
          pen.fillText(bar.id, left + 4, at * tall + tall / 2 + 4, right - left - 6);
        }
      }
    }
  }
  canvas.dataset.drawn = String(drawn);
  pen.fillStyle = ink;
  for (let at = 0; at <= 4; at++) {
    const seconds = now - length + (length * at) / 4;
    pen.textAlign = at === 0 ? "left" : at === 4 ? "right" : "center";
    pen.fillText(new Date(seconds * 1000).toLocaleTimeString(), (width * at) / 4, height - 5);
  }
  pen.textAlign = "left";
}

function hatch(pen, left, top, width, height, ink) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.strokeStyle = ink;
  pen.globalAlpha = 0.45;
  pen.beginPath();
  for (let at = left - height; at < left + width; at += 7) {
    pen.moveTo(at, top + height);
    pen.lineTo(at + height, top);
  }
  pen.stroke();
  pen.restore();
}

// -------------------------------------------------------------------------------- what happens
function sentence(line) {
  const at = new Date((line.at + state.zero) * 1000).toLocaleTimeString();
  if (line.kind === "preempt") return `${at} job ${line.job} makes way for ${line.preemptor || "nobody in particular"}: ${line.mode}`;
  if (line.kind === "state") return `${at} job ${line.job}: ${line.state.toLowerCase()}`;
  if (line.kind === "rejected" || line.kind === "refused") return `${at} job ${line.job}: refused: ${line.reason}`;
  return null;
}

function listen() {
  const source = new EventSource(`/v1/events?after=${state.last}`);
  let waiting = false;
  source.addEventListener("open", () => { byId("live").textContent = "live"; });
  source.addEventListener("error", () => { byId("live").textContent = "the daemon is away"; });
  source.addEventListener("step", (event) => {
    const step = JSON.parse(event.data);
    for (const line of step.lines) {
      state.zero = step.wall - line.at;
      const text = sentence(line);
      if (text) byId("events").prepend(element("li", text));
    }
    while (byId("events").children.length > MOST_EVENTS) byId("events").lastChild.remove();
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; refresh().catch(() => {}); }, 100);
  });
}

async function begin() {
  const about = await ask("/v1/daemon");
  state.last = about.sequence;
  state.control = about.control;
  state.partitions = about.partitions;
  state.zero = 0;
  byId("doing").hidden = !about.control;
  byId("cluster").textContent = about.cluster;
  byId("policy").textContent = about.policy.preempt;
  for (const name of about.partitions) {
    const item = element("li");
    const patch = element("i");
    patch.style.background = colourOf(name);
    item.append(patch, name);
    byId("legend").append(item);
  }
  byId("legend").append(element("li", "hatched: suspended", { class: "muted" }));
  await refresh();
  listen();
  byId("span").addEventListener("change", drawGantt);
  addEventListener("resize", drawGantt);
  setInterval(() => { if (!document.hidden && state.jobs.some((job) => job.nodes)) tickAll(); }, 1000);
}

/** Let the times of running jobs go on between two events. */
function tickAll() {
  for (const job of state.jobs) {
    if (job.state !== "RUNNING") continue;
    job.ran += 1;
    const cell = document.querySelector(`tr[data-job="${CSS.escape(job.id)}"] td.number`);
    if (cell) cell.textContent = span(job.ran);
  }
  drawGantt();
}

begin().catch((error) => { byId("live").textContent = error.message; });
