// Jobs over nodes.

const MOST_PIECES = 3000;
const MOST_ARROWS = 30;
const GUTTER = 64;
const AXIS = 22;
const TOP = 12;

const gantt = {
  width: 0, height: 0, drawn: "", pieces: 0, arrows: 0, colours: null, tip: null, hover: -1, least: 130,

  begin() {
    this.canvas = byId("gantt");
    this.pen = this.canvas.getContext("2d");
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    view.listeners.push(() => this.draw());
  },

  resize(width) {
    const rows = Math.max(1, current().nodes.length);
    this.width = Math.max(60, Math.floor(width - GUTTER - 2));
    this.height = Math.max(this.least, Math.min(560, rows * 34));
    const whole = this.width + GUTTER + 2;
    const tall = this.height + TOP + AXIS;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(whole * ratio);
    this.canvas.height = Math.round(tall * ratio);
    this.canvas.style.width = `${whole}px`;
    this.canvas.style.height = `${tall}px`;
    this.ratio = ratio;
  },

  x(at) { return GUTTER + ((at - view.from) / (view.to - view.from)) * this.width; },
  at(x) { return view.from + ((x - GUTTER) / this.width) * (view.to - view.from); },
  rowHeight() { return this.height / Math.max(1, view.rows); },
  y(row) { return TOP + (row - view.firstRow) * this.rowHeight(); },

  /** Rectangles of a piece, as rows and lanes: first row, last row, upper edge and height from 0 to 1. */
  eachRange(run, piece, look) {
    const { before } = chosenNodes();
    const place = run.place[piece];
    const low = view.firstRow;
    const high = view.firstRow + view.rows;
    for (let i = run.rangesFrom[place]; i < run.rangesFrom[place + 1]; i++) {
      const first = Math.max(low, before[run.rangeFirst[i]]);
      const last = Math.min(high, before[run.rangeFirst[i] + run.rangeCount[i]]);
      if (last > first && look(first, last, run.rangeTop[i] / WHOLE, run.rangeHeight[i] / WHOLE)) return true;
    }
    return false;
  },

  inView(run) {
    if (!this.found || this.found.length < run.start.length) this.found = new Int32Array(run.start.length);
    const found = this.found;
    const some = view.rows < run.nodes.length;
    let many = 0;
    run.eachPiece(view.from, view.to, (piece) => {
      if (!some || this.eachRange(run, piece, () => true)) found[many++] = piece;
    });
    return found.subarray(0, many);
  },

  draw() {
    const run = current();
    const pen = this.pen;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width + GUTTER + 2, this.height + TOP + AXIS);
    const kind = `${view.run} ${view.by}`;
    if (this.kind !== kind) {
      this.kind = kind;
      this.colours = colouring(run, view.by);
      this.density = null;
    }
    const pieces = this.inView(run);
    this.pieces = pieces.length;
    this.drawn = pieces.length > MOST_PIECES ? "density" : "pieces";
    this.frameAndTicks(run);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, 0, this.width, this.height + TOP);
    pen.clip();
    if (this.drawn === "density") {
      this.drawDensity(run, pieces);
      if (view.job >= 0) for (const piece of run.pieces.of(view.job)) this.drawPiece(run, piece, 1, true);
    } else {
      for (const piece of pieces) if (run.state[piece] !== STATE.SUSPENDED) this.drawPiece(run, piece, this.strength(run, piece));
      for (const piece of pieces) if (run.state[piece] === STATE.SUSPENDED) this.drawPiece(run, piece, this.strength(run, piece));
    }
    if (view.job >= 0) this.drawSelected(run);
    this.drawPreemptions(run);
    pen.restore();
    this.caption(run);
    drawLegend(this.colours.legend);
  },

  strength(run, piece) {
    return view.job < 0 || run.pieceJob[piece] === view.job || this.related(run).has(run.pieceJob[piece]) ? 1 : 0.3;
  },

  related(run) {
    if (this.relatedOf !== `${view.run} ${view.job}`) {
      this.relatedOf = `${view.run} ${view.job}`;
      this.relatedJobs = new Set();
      for (const at of run.byPreemptor.of(view.job)) this.relatedJobs.add(run.victim[at]);
      for (const at of run.byVictim.of(view.job)) this.relatedJobs.add(run.preemptor[at]);
    }
    return this.relatedJobs;
  },

  drawDensity(run, pieces) {
    const width = this.width;
    const scale = width / (view.to - view.from);
    const { planes, planeOf } = this.colours;
    if (!this.density) this.density = new Density([...planes, LOST_COLOUR, SUSPENDED_COLOUR].map(parts));
    const made = this.density;
    made.clear(view.rows, width);
    const of = run.job[view.by];
    const { before } = chosenNodes();
    const low = view.firstRow;
    const high = view.firstRow + view.rows;
    const { start, stop, state, gone, place, pieceJob, rangesFrom, rangeFirst, rangeCount, rangeHeight } = run;
    for (const piece of pieces) {
      const plane = gone[piece] ? planes.length : state[piece] ? planes.length + 1 : planeOf[of[pieceJob[piece]]];
      const share = (state[piece] ? 0.33 : 1) / WHOLE;
      const left = (start[piece] - view.from) * scale;
      const right = (stop[piece] - view.from) * scale;
      for (let i = rangesFrom[place[piece]], end = rangesFrom[place[piece] + 1]; i < end; i++) {
        const first = Math.max(low, before[rangeFirst[i]]);
        const last = Math.min(high, before[rangeFirst[i] + rangeCount[i]]);
        if (last > first) made.add(left, right, first - low, last - low, plane, share * rangeHeight[i]);
      }
    }
    const image = made.image(view.job >= 0 ? 0.4 : 1);
    if (!this.side || this.side.width !== width || this.side.height !== image.height) {
      this.side = document.createElement("canvas");
      this.side.width = width;
      this.side.height = image.height;
    }
    this.side.getContext("2d").putImageData(image, 0, 0);
    this.pen.imageSmoothingEnabled = view.rows > this.height;
    this.pen.drawImage(this.side, GUTTER, TOP, width, this.height);
  },

  drawPiece(run, piece, alpha, outlined) {
    const pen = this.pen;
    const tall = this.rowHeight();
    const left = Math.max(GUTTER - 4, this.x(run.start[piece]));
    const right = Math.min(GUTTER + this.width + 4, this.x(run.stop[piece]));
    const wide = Math.max(right - left, 0.7);
    const job = run.pieceJob[piece];
    const colour = this.colours.of(job);
    const gap = tall > 6 ? 1 : 0;
    pen.globalAlpha = alpha;
    this.eachRange(run, piece, (first, last, top, height) => {
      const whole = height > 0.999;
      const boxes = whole ? [[first, last]] : Array.from({ length: last - first }, (_, at) => [first + at, first + at + 1]);
      for (const [from, to] of boxes) {
        let y = this.y(from) + top * tall;
        let high = whole ? (to - from) * tall - gap : height * tall - gap * 0.5;
        if (run.state[piece] === STATE.SUSPENDED) {
          const strip = Math.max(2, Math.min(18, (height * tall) / 3));
          for (let row = from; row < to; row++) {
            const at = this.y(row) + (top + height) * tall - strip - gap;
            pen.fillStyle = theme.bg;
            pen.fillRect(left, at, wide, strip);
            pen.fillStyle = hatch(pen, "", colour, 6);
            pen.fillRect(left, at, wide, strip);
            pen.strokeStyle = colour;
            pen.lineWidth = 1;
            if (wide > 2 && strip > 3) pen.strokeRect(left + 0.5, at + 0.5, wide - 1, strip - 1);
          }
          y = this.y(from) + (top + height) * tall - strip - gap;
          high = strip;
          this.label(run, job, left, y, wide, high, theme.bg, true);
          continue;
        }
        high = Math.max(high, 0.6);
        if (run.gone[piece]) pen.fillStyle = wide > 3 && high > 3 ? hatch(pen, LOST_COLOUR, "#ffffff") : LOST_COLOUR;
        else if (run.state[piece] === STATE.COMPLETING) pen.fillStyle = hatch(pen, theme.card, OTHERS, 4);
        else pen.fillStyle = colour;
        pen.fillRect(left, y, wide, high);
        if (wide > 3 && high > 3) {
          pen.strokeStyle = theme.bg;
          pen.lineWidth = 0.6;
          pen.strokeRect(left, y, wide, high);
        }
        if (outlined || job === view.job) {
          pen.strokeStyle = theme.fg;
          pen.lineWidth = 2;
          pen.strokeRect(left + 1, y + 1, Math.max(wide - 2, 1), Math.max(high - 2, 1));
        }
        this.label(run, job, left, y, wide, high, run.gone[piece] ? LOST_COLOUR : colour, false, run.gone[piece]);
      }
    });
    pen.globalAlpha = 1;
  },

  label(run, job, left, y, wide, high, back, suspended, backed) {
    if (high < 11 || wide < 18) return;
    const pen = this.pen;
    const from = Math.max(left, GUTTER) + 4;
    const text = suspended ? `${run.ids[job]} suspended` : run.ids[job];
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const shown = [text, run.ids[job]].find((each) => pen.measureText(each).width < left + wide - from - 3);
    if (!shown) return;
    const width = pen.measureText(shown).width;
    const middle = y + Math.min(high, 26) / 2;
    if (pen.globalAlpha < 1) {
      const faded = pen.globalAlpha;
      pen.globalAlpha = 1;
      pen.fillStyle = theme.muted;
      pen.fillText(shown, from, middle + 0.5);
      pen.globalAlpha = faded;
      return;
    }
    if (suspended || backed) {
      pen.fillStyle = suspended ? theme.bg : LOST_COLOUR;
      pen.fillRect(from - 2, middle - 7, width + 4, 14);
    }
    pen.fillStyle = suspended ? theme.fg : darkText(back) ? "#000000" : "#ffffff";
    pen.fillText(shown, from, middle + 0.5);
  },

  /** The job in question: its waits between a lost run and the next start. */
  drawSelected(run) {
    const pen = this.pen;
    const pieces = run.pieces.of(view.job);
    pen.strokeStyle = theme.fg;
    pen.lineWidth = 1.2;
    pen.setLineDash([4, 3]);
    for (let i = 1; i < pieces.length; i++) {
      if (run.start[pieces[i]] <= run.stop[pieces[i - 1]]) continue;
      const one = this.middle(run, pieces[i - 1]);
      const other = this.middle(run, pieces[i]);
      if (one === null || other === null) continue;
      pen.beginPath();
      pen.moveTo(this.x(run.stop[pieces[i - 1]]), one);
      pen.lineTo(this.x(run.start[pieces[i]]), other);
      pen.stroke();
    }
    pen.setLineDash([]);
  },

  middle(run, piece) {
    let y = null;
    this.eachRange(run, piece, (first, last, top, height) => {
      y = this.y(first) + (height > 0.999 ? (last - first) / 2 : top + height / 2) * this.rowHeight();
      return true;
    });
    return y;
  },

  drawPreemptions(run) {
    const pen = this.pen;
    const from = upperBound(run.at, view.from - 1e-9);
    const to = upperBound(run.at, view.to);
    pen.fillStyle = theme.arrow;
    let before = -9;
    for (let i = from; i < to; i++) {
      const x = Math.round(this.x(run.at[i]));
      if (x === before) continue;
      before = x;
      pen.fillRect(x - 1, 0, 2, TOP - 3);
    }
    const own = view.job >= 0 ? [...run.byPreemptor.of(view.job), ...run.byVictim.of(view.job)] : null;
    const listed = own && own.length ? own.filter((i) => run.at[i] >= view.from && run.at[i] <= view.to)
      : to - from <= MOST_ARROWS ? Array.from({ length: to - from }, (_, at) => from + at) : [];
    this.arrows = 0;
    for (const i of listed) this.arrow(run, i);
  },

  arrow(run, i) {
    if (run.preemptor[i] < 0) return;
    const source = run.pieceAt(run.preemptor[i], run.at[i], true);
    const target = run.pieceAt(run.victim[i], run.at[i], false);
    if (source < 0 || target < 0) return;
    const y1 = this.middle(run, source);
    const y2 = this.middle(run, target);
    if (y1 === null || y2 === null) return;
    const x2 = this.x(run.at[i]);
    const x1 = Math.max(x2, this.x(run.start[source])) + Math.min(14, Math.max(3, this.x(run.stop[source]) - this.x(run.start[source])) / 2);
    const bow = Math.min(60, 16 + Math.abs(y2 - y1) / 4);
    const pen = this.pen;
    this.arrows++;
    pen.strokeStyle = theme.arrow;
    pen.fillStyle = theme.arrow;
    pen.lineWidth = i === view.preemption ? 3 : 1.8;
    pen.beginPath();
    pen.arc(x1, y1, 3, 0, 7);
    pen.fill();
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(x1 + bow, y1, x2 + bow, y2, x2 + 2, y2);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 + 8, y2 - 4);
    pen.lineTo(x2 + 8, y2 + 4);
    pen.fill();
  },

  frameAndTicks(run) {
    const pen = this.pen;
    const epoch = run.about.epoch;
    const bottom = TOP + this.height;
    pen.font = "11px system-ui, sans-serif";
    pen.strokeStyle = theme.line;
    pen.lineWidth = 1;
    pen.strokeRect(GUTTER - 0.5, TOP - 0.5, this.width + 1, this.height + 1);
    const { step, at } = ticks(view.from, view.to, this.width, epoch);
    pen.textBaseline = "top";
    pen.textAlign = "center";
    pen.fillStyle = theme.muted;
    for (const each of at) {
      const x = Math.round(this.x(each)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, TOP);
      pen.lineTo(x, bottom);
      pen.stroke();
      const text = tickText(each, step, epoch);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.max(half, Math.min(this.width + GUTTER - half, x)), bottom + 6);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const { nodes } = chosenNodes();
    const every = Math.max(1, Math.ceil(14 / this.rowHeight()));
    for (let row = view.firstRow; row < view.firstRow + view.rows; row++) {
      if ((row - view.firstRow) % every) continue;
      pen.fillText(clipped(pen, run.nodes[nodes[row]], GUTTER - 8), GUTTER - 5, this.y(row) + Math.min(this.rowHeight(), 16) / 2);
    }
    pen.textAlign = "left";
  },

  caption(run) {
    const { nodes } = chosenNodes();
    const parts_ = [view.runs.length > 1 ? `${run.letter}: ${run.label}` : run.label];
    if (this.drawn === "density") {
      parts_.push(`${number(this.pieces)} pieces of jobs in view, shown as density (mean colour of what ran); zoom in to see each job`);
    } else parts_.push(`${count(this.pieces, "piece")} of jobs in view, each drawn`);
    const listed = view.rows < nodes.length || nodes.length < run.nodes.length;
    if (listed) parts_.push(`${number(view.rows)} of ${number(run.nodes.length)} nodes`);
    if (run.about.rest) parts_.push(`${number(run.about.rest.jobs)} small jobs are not drawn`);
    byId("caption").textContent = parts_.join(" · ");
    byId("nodefilter").setAttribute("aria-invalid", String(!nodes.length));
    byId("spanshown").textContent = `${instant(view.from, run.about.epoch)} to ${instant(view.to, run.about.epoch)}`
      + (run.about.epoch !== null ? " UTC" : "") + `, ${duration(view.to - view.from)}`;
  },

  // -------------------------------------------------------------------------------- by hand
  wheel(event) {
    if (!(event.ctrlKey || event.metaKey || event.shiftKey || document.activeElement === byId("stage"))) return;
    event.preventDefault();
    const amount = Math.exp((event.deltaY || event.deltaX) * 0.002);
    if (event.shiftKey) zoomRows(amount);
    else zoom(amount, this.at(event.offsetX));
  },

  press(event) {
    if (event.button) return;
    const start = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, row: view.firstRow };
    let moved = false;
    this.canvas.setPointerCapture(event.pointerId);
    const move = (next) => {
      const dx = next.offsetX - start.x;
      const dy = next.offsetY - start.y;
      if (!moved && Math.hypot(dx, dy) < 5) return;
      moved = true;
      const shift = (-dx / this.width) * (start.to - start.from);
      show({ from: start.from + shift, to: start.to + shift, firstRow: start.row - dy / this.rowHeight() });
    };
    const end = (next) => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", end);
      this.canvas.removeEventListener("pointercancel", end);
      byId("stage").focus({ preventScroll: true });
      if (!moved) selectJob(this.jobAt(next.offsetX, next.offsetY));
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  },

  pieceUnder(x, y) {
    const run = current();
    if (x < GUTTER || x > GUTTER + this.width || y < TOP || y > TOP + this.height) return -1;
    const slack = (view.to - view.from) / this.width;
    const at = this.at(x);
    const exact = view.firstRow + (y - TOP) / this.rowHeight();
    const row = Math.floor(exact);
    const within = exact - row;
    let found = -1;
    run.eachPiece(at - slack, at + slack, (piece) => {
      const hit = this.eachRange(run, piece, (first, last, top, height) => {
        if (row < first || row >= last || within < top || within > top + height) return false;
        return run.state[piece] !== STATE.SUSPENDED || within > top + (height * 2) / 3;
      });
      if (hit && (found < 0 || run.state[piece] === STATE.SUSPENDED || run.start[piece] <= at)) found = piece;
    });
    return found;
  },

  jobAt(x, y) {
    const piece = this.pieceUnder(x, y);
    return piece < 0 ? -1 : current().pieceJob[piece];
  },

  point(event) {
    if (event.buttons) return;
    const piece = this.pieceUnder(event.offsetX, event.offsetY);
    const tip = byId("tip");
    this.canvas.style.cursor = piece < 0 ? "grab" : "pointer";
    tip.hidden = piece < 0;
    if (piece < 0) return;
    const run = current();
    const job = run.pieceJob[piece];
    const words = run.gone[piece] ? "ran, work lost" : ["runs", "suspended", "is leaving"][run.state[piece]];
    tip.replaceChildren("job ", named(run.ids[job]), " of ", named(run.word("user", job)), ` · ${words} · `,
      `${instant(run.start[piece], run.about.epoch)}, ${duration(run.stop[piece] - run.start[piece])}`);
    const wide = tip.offsetWidth;
    tip.style.left = `${Math.min(event.offsetX + 12, this.width + GUTTER - wide)}px`;
    tip.style.top = `${event.offsetY + 16}px`;
  },

  leave() { byId("tip").hidden = true; },
};

function clipped(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && pen.measureText(`\u2026${cut}`).width > width) cut = cut.slice(1);
  return `\u2026${cut}`;
}
