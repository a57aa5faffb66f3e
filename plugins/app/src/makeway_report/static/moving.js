// Move and zoom in time and over nodes; what the colours mean.

function zoom(amount, around = (view.from + view.to) / 2) {
  const span = (view.to - view.from) * amount;
  const share = (around - view.from) / (view.to - view.from);
  show({ from: around - share * span, to: around + (1 - share) * span });
}

function move(share) {
  const shift = (view.to - view.from) * share;
  show({ from: view.from + shift, to: view.to + shift });
}

function zoomRows(amount) {
  const all = chosenNodes().nodes.length;
  const middle = view.firstRow + view.rows / 2;
  let rows = Math.round(view.rows * amount);
  if (rows === view.rows) rows += amount > 1 ? 1 : -1;
  rows = Math.max(1, Math.min(all, rows));
  show({ rows, firstRow: Math.round(middle - rows / 2) });
}

function moveRows(share) {
  show({ firstRow: view.firstRow + Math.sign(share) * Math.max(1, Math.round(Math.abs(share) * view.rows)) });
}

function drawLegend(listed) {
  const text = JSON.stringify([listed, document.documentElement.dataset.theme]);
  if (drawLegend.before === text) return;
  drawLegend.before = text;
  const sample = (colour, kind) => {
    const box = element("span", { className: `sample ${kind}`, "aria-hidden": "true" });
    if (colour) box.style.background = colour;
    return box;
  };
  const items = listed.map(([name, colour]) => element("li", {}, sample(colour, ""), named(name)));
  items.push(element("li", {}, sample("", "lost"), "work lost: thrown away by a requeue or cancel"));
  items.push(element("li", {}, sample("", "suspended"), "suspended"));
  items.push(element("li", {}, element("span", { className: "arrow", "aria-hidden": "true" }, "\u2192"), "displaces"));
  byId("legend").replaceChildren(...items);
}
