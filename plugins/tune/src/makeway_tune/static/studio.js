"use strict";
// Shows what the server knows, and asks it for replays and stories. Texts are only ever set as text.
(() => {
const at = id => document.getElementById(id);
const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), {textContent: text}, more);
// Text that may go on in the next line behind a sign, so that no word has to be broken.
const breakable = text => {
  const whole = made("span");
  for (const part of text.split(/(?<=[=:_/\[\]])/)) whole.append(part, made("wbr"));
  return whole;
};
let state = {runs: [], stories: {}, settings: []};
let story = "";
let timer = 0;

function say(text) { if (at("status").textContent !== text) at("status").textContent = text; }

async function asked(path, body) {
  const given = body === undefined ? {} : {method: "POST", body: JSON.stringify(body)};
  const answer = await fetch(path, given);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

async function look() {
  clearTimeout(timer);
  try {
    state = await asked("/v1/state");
  } catch (error) {
    say(`no answer: ${error.message}`);
    timer = setTimeout(look, 3000);
    return;
  }
  show();
  const every = [...state.runs, ...Object.values(state.stories)];
  if (every.some(each => each.state === "runs" || each.state === "waits")) timer = setTimeout(look, 400);
}

function settings() {
  for (const each of state.settings) {
    const label = made("label");
    const choice = made("select", "", {name: each.name});
    for (const value of [each.now, ...each.values]) choice.append(new Option(value || "not set", value));
    choice.addEventListener("change", mark);
    label.append(breakable(each.name), choice);
    at("settings").append(label);
  }
}

function mark() {
  for (const label of at("settings").children) label.classList.toggle("changed", label.querySelector("select").selectedIndex > 0);
}

function run(each) {
  let line = at(`run-${each.name}`);
  if (line === null) {
    line = made("li", "", {id: `run-${each.name}`});
    const progress = made("progress", "", {max: 1, value: 0});
    progress.setAttribute("aria-label", `progress of ${each.name}`);
    line.append(made("strong", each.name), ` ${each.said} `, progress, " ", made("span", "", {className: "dim"}));
    at("runs").append(line);
  }
  if (line.dataset.state === "done" || line.dataset.state === "failed") return false;
  line.dataset.state = each.state;
  const [progress, told] = [line.querySelector("progress"), line.querySelector("span")];
  if (each.state === "runs") { progress.value = each.share; told.textContent = each.told; }
  if (each.state === "waits") told.textContent = "waits for its turn";
  if (each.state !== "done" && each.state !== "failed") return false;
  progress.remove();
  told.textContent = "";
  if (each.state === "failed") {
    told.className = "why";
    told.textContent = each.why;
    say(`${each.name} failed`);
    return false;
  }
  told.append(made("a", `who ran where and when in ${each.name}`, {href: `/runs/${each.name}`, target: "_blank", rel: "noopener"}));
  if (each.diff) {
    const details = made("details");
    details.append(made("summary", `the change of ${each.name}`), made("pre", each.diff, {tabIndex: 0}));
    line.append(details);
  }
  at("of").append(new Option(each.name, each.name));
  at("of").value = each.name;
  say(`${each.name} is done`);
  return true;
}

function figures() {
  const done = state.runs.filter(each => each.state === "done");
  if (!done.length) return;
  const table = at("figures");
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const text of ["of", "figure", ...done.map(each => each.name)]) head.append(made("th", text, {scope: "col"}));
  const body = table.createTBody();
  const keys = new Map(done.flatMap(each => each.figures.map(one => [`${one.group}\n${one.figure}`, one])));
  let before = "";
  for (const [key, one] of keys) {
    const values = done.map(each => each.figures.find(other => `${other.group}\n${other.figure}` === key));
    const row = body.insertRow();
    row.append(made("td", one.group === before ? "" : one.group), made("td", one.figure));
    before = one.group;
    for (const each of values) {
      const cell = made("td", each ? each.shown : "-");
      if (each && each.between) {
        const [low, high] = each.between.map(end => made("span", end));
        const noise = each.way === "noise" ? ", noise" : "";
        cell.append(made("span", "", {className: `between ${each.way}`}));
        cell.lastChild.append(low, " to ", high, noise);
      }
      row.append(cell);
    }
  }
}

function jobs() {
  const found = state.runs.find(each => each.name === at("of").value);
  if (!found || found.state !== "done") return;
  const table = at("jobs");
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const text of ["job", "user", "partition", "waited", "core-hours lost", "made way"]) head.append(made("th", text, {scope: "col"}));
  const body = table.createTBody();
  for (const each of found.jobs) {
    const row = body.insertRow();
    const button = made("button", each.job, {type: "button"});
    button.setAttribute("aria-label", `explain job ${each.job}`);
    button.addEventListener("click", () => explain(each.job));
    row.insertCell().append(button);
    for (const text of [each.user, each.partition, each.wait, each.lost, each.hits]) row.append(made("td", text));
  }
}

async function explain(job) {
  try {
    story = (await asked("/v1/stories", {run: at("of").value, job})).name;
    say(`job ${job} is looked into`);
    await look();
  } catch (error) { say(error.message); }
}

function tell() {
  const found = state.stories[story];
  if (!found) return;
  at("story").hidden = false;
  const head = `Job ${found.job} in replay ${found.run}`;
  const text = found.state === "done" ? found.text : found.state === "failed" ? found.why : `replaying: ${found.told || "it begins"}`;
  at("story-head").textContent = head;
  at("told").textContent = text;
  if (found.state === "done" || found.state === "failed") {
    say(`${head}: ${found.state === "done" ? "explained" : "failed"}`);
    at("story").focus();
    story = "";
  }
}

function show() {
  if (!at("settings").children.length) {
    at("about").textContent = `${state.about.config}, ${state.about.jobs.toLocaleString("en")} jobs of ${state.about.workload}`;
    settings();
  }
  if (state.runs.map(run).some(Boolean)) { figures(); jobs(); }
  tell();
  document.documentElement.dataset.ready = "true";
}

at("form").addEventListener("submit", async event => {
  event.preventDefault();
  const chosen = Object.fromEntries([...at("settings").querySelectorAll("select")].map(each => [each.name, each.value]));
  try {
    const {name} = await asked("/v1/runs", chosen);
    say(`${name} begins`);
    await look();
  } catch (error) { say(error.message); }
});
at("form").addEventListener("reset", () => setTimeout(mark));
at("filter").addEventListener("input", () => {
  const wanted = at("filter").value.toLowerCase();
  for (const label of at("settings").children) label.hidden = !label.firstChild.textContent.toLowerCase().includes(wanted);
});
at("of").addEventListener("change", jobs);
at("ask").addEventListener("submit", event => { event.preventDefault(); explain(at("job").value.trim()); });
look();
})();
