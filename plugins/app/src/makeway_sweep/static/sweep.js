"use strict";
const by = document.getElementById("by"), legend = document.getElementById("legend");
const body = document.querySelector("#runs tbody"), dots = [...document.querySelectorAll("svg a[data-run]")];
const rowOf = new Map([...body.rows].map((row) => [row.dataset.run, row]));
const dotOf = new Map(dots.map((dot) => [dot.dataset.run, dot]));

/* Colours: the values of one key; more than eight share the last colour. */
function paint() {
  const names = JSON.parse(by.selectedOptions[0].dataset.values);
  for (const dot of dots) {
    dot.setAttribute("class", `k${Math.min(7, Number(dot.dataset.places.split(" ")[by.selectedIndex]))}`);
  }
  legend.replaceChildren(...names.slice(0, 8).map((name, at) => {
    const item = document.createElement("li");
    item.className = `k${at}`;
    item.textContent = at === 7 && names.length > 8 ? `${names.length - 7} others` : name;
    return item;
  }));
  mark(chosen);
}

let chosen = null;
function mark(run) {
  for (const each of document.querySelectorAll(".on")) each.classList.remove("on");
  chosen = run;
  if (run === null) return;
  dotOf.get(run)?.classList.add("on");
  rowOf.get(run)?.classList.add("on");
}

for (const dot of dots) {
  dot.addEventListener("click", (event) => {
    event.preventDefault();
    mark(dot.dataset.run);
    rowOf.get(dot.dataset.run).scrollIntoView({ block: "center" });
  });
  dot.addEventListener("mouseenter", () => mark(dot.dataset.run));
}
body.addEventListener("mouseover", (event) => mark(event.target.closest("tr").dataset.run));

/* Sorting: numbers by number, words by word; the other way at the second click. */
const heads = [...document.querySelectorAll("#runs thead th")];
heads.forEach((head, at) => head.querySelector("button").addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const each of heads) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[at].dataset.sort ?? row.cells[at].textContent;
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)];
    const [m, n] = [Number(x), Number(y)];
    return Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
  };
  body.append(...[...body.rows].sort((a, b) => (down ? -order(a, b) : order(a, b))));
}));

by.addEventListener("change", paint);
paint();
document.documentElement.dataset.ready = "1";
