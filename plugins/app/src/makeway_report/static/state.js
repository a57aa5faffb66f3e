// What is shown, kept in the address so that a link shows it again.

const view = {
  run: 0, from: 0, to: 1, by: "partition", job: -1, preemption: -1, filter: "",
  firstRow: 0, rows: 0,
  runs: [],
  listeners: [],
};

function current() {
  return view.runs[view.run];
}

/** Change what is shown and draw it with the next frame. */
function show(changes) {
  Object.assign(view, changes);
  const end = Math.max(...view.runs.map((run) => run.end), 1);
  const least = Math.min(1, end / 10);
  let span = Math.min(Math.max(view.to - view.from, least), end);
  if (!Number.isFinite(span)) span = end;
  view.from = Math.min(Math.max(0, view.from || 0), end - span);
  view.to = view.from + span;
  settleRows();
  remember();
  redraw();
}

let frame = 0;
const timings = { frames: 0, last: 0 };

function redraw() {
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    const began = performance.now();
    for (const draw of view.listeners) draw();
    timings.last = performance.now() - began;
    timings.frames++;
  });
}

// ------------------------------------------------------------------------------------- nodes
let chosen = { filter: null, run: -1, nodes: [], before: null };

/** Which nodes pass the filter, and how many pass before each node. */
function chosenNodes() {
  const run = current();
  if (chosen.filter === view.filter && chosen.run === view.run) return chosen;
  const pass = nodeTest(view.filter);
  const before = new Int32Array(run.nodes.length + 1);
  const nodes = [];
  run.nodes.forEach((name, at) => {
    if (pass(name)) nodes.push(at);
    before[at + 1] = nodes.length;
  });
  chosen = { filter: view.filter, run: view.run, nodes, before };
  return chosen;
}

/** A test for names: parts between commas; n[1-4,7] and n* as on a command line, else any part of the name. */
function nodeTest(text) {
  const wanted = text.split(/,(?![^[]*\])/).map((part) => part.trim()).filter(Boolean);
  if (!wanted.length) return () => true;
  const tests = wanted.map((part) => {
    if (!/[[*?]/.test(part)) return (name) => name.includes(part);
    const numbers = [];
    const source = part.replace(/\[([^\]]*)\]|[*?]|[.+^${}()|\\\]]/g, (whole, list) => {
      if (whole === "*") return ".*";
      if (whole === "?") return ".";
      if (list === undefined) return `\\${whole}`;
      numbers.push(list.split(",").map((each) => each.split("-").map(Number)));
      return "(\\d+)";
    });
    let pattern;
    try {
      pattern = new RegExp(`^${source}$`);
    } catch {
      return (name) => name.includes(part);
    }
    return (name) => {
      const found = pattern.exec(name);
      return found !== null && numbers.every((list, at) =>
        list.some(([low, high = low]) => Number(found[at + 1]) >= low && Number(found[at + 1]) <= high));
    };
  });
  return (name) => tests.some((test) => test(name));
}

function settleRows() {
  const all = chosenNodes().nodes.length;
  if (!(view.rows > 0) || view.rows > all) view.rows = all;
  view.firstRow = Math.max(0, Math.min(Math.round(view.firstRow), all - view.rows));
}

// ----------------------------------------------------------------------------------- address
let timer = 0;

function remember() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const text = address();
    if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? `#${text}` : location.pathname);
  }, 200);
}

function address() {
  const end = Math.max(...view.runs.map((run) => run.end), 1);
  const all = chosenNodes().nodes.length;
  const said = new URLSearchParams();
  if (view.run) said.set("run", current().label);
  if (view.from > 0 || view.to < end) {
    said.set("from", String(Math.round(view.from * 1000) / 1000));
    said.set("to", String(Math.round(view.to * 1000) / 1000));
  }
  if (view.by !== defaultKind()) said.set("by", view.by);
  if (view.filter) said.set("nodes", view.filter);
  if (view.rows < all) said.set("rows", `${view.firstRow}+${view.rows}`);
  if (view.job >= 0) said.set("job", current().ids[view.job]);
  return said.toString();
}

/** Show what an address says; what it does not say is shown as at the beginning. */
function restore(text) {
  const said = new URLSearchParams(text);
  const end = Math.max(...view.runs.map((run) => run.end), 1);
  const run = Math.max(0, view.runs.findIndex((each) => each.label === said.get("run")));
  const numeric = (name, otherwise) => {
    const value = Number(said.get(name) || NaN);
    return Number.isFinite(value) ? value : otherwise;
  };
  const [firstRow, rows] = (said.get("rows") || "0+0").split(/[+ ]/).map(Number);
  const kinds = Array.from(byId("by").options, (option) => option.value);
  view.run = run;
  show({
    from: numeric("from", 0), to: numeric("to", end), firstRow: firstRow || 0, rows: rows || 0,
    by: kinds.includes(said.get("by")) ? said.get("by") : defaultKind(),
    filter: said.get("nodes") || "",
    job: said.has("job") ? view.runs[run].byId.get(said.get("job")) ?? -1 : -1,
    preemption: -1,
  });
}

function defaultKind() {
  const kinds = { partition: "partition", QOS: "qos", QoS: "qos", account: "account", user: "user" };
  return kinds[view.runs[0].about.policy.displaces_by] || "side";
}
