// Jobs whose wait changed most from the first run to another, and the first decision about each that differs.

function drawChanges() {
  if (view.runs.length < 2) return;
  const [first, ...others] = view.runs;
  fill("changes", ...others.flatMap((other) => changesOf(first, other)));
}

function changesOf(first, other) {
  const { longer, shorter, same, alone, most } = other.about.changes;
  const left = alone ? `, ${number(alone)} in one run only` : "";
  const made = [
    element("h3", {}, `${other.letter}: `, named(other.label), ` against ${first.letter}: `, named(first.label)),
    element("p", {}, `Jobs that wait longer: ${number(longer)}, shorter: ${number(shorter)}, the same: ${number(same)}${left}`),
  ];
  if (!most.length) return made;
  const table = element("table", {},
    head("job", "user", under("wait", first), under("wait", other), "change", "differs from", under("decided", first), under("decided", other)),
    element("tbody", {}, ...most.map((each) => changeRow(each, first.about.epoch))));
  const label = `Jobs whose wait changed most, run ${other.number + 1} against the first`;
  made.push(element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label }, table));
  return made;
}

function under(what, run) {
  const cell = element("th", { scope: "col" }, `${what} under ${run.letter}`);
  if (what === "decided") cell.className = "why";
  return cell;
}

function changeRow(each, epoch) {
  const run = current();
  const job = run.byId.get(each.job);
  const change = each.after - each.before;
  const signed = `${change > 0 ? "+" : MINUS}${duration(Math.abs(change))}`;
  const made = row(job === undefined ? element("span", {}, "job ", named(each.job)) : jobLink(run, job), named(each.user),
    duration(each.before), duration(each.after),
    `${signed}, ${change > 0 ? "longer" : "shorter"}`,
    instant(each.at, epoch), named(each.first), named(each.second));
  for (const cell of [...made.children].slice(-2)) cell.className = "why";
  return made;
}
