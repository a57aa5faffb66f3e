// The whole time at a glance, with the window that the other pictures show.

const strip = {
  height: 48,

  begin() {
    this.canvas = byId("strip");
    this.pen = this.canvas.getContext("2d");
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.cursor(event));
    view.listeners.push(() => this.draw());
  },

  resize(width) {
    this.width = Math.max(60, Math.floor(width - GUTTER - 2));
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round((this.width + GUTTER + 2) * this.ratio);
    this.canvas.height = this.height * this.ratio;
    this.canvas.style.width = `${this.width + GUTTER + 2}px`;
    this.canvas.style.height = `${this.height}px`;
    this.picture = null;
  },

  end() { return Math.max(...view.runs.map((run) => run.end), 1); },
  x(at) { return GUTTER + (at / this.end()) * this.width; },
  at(x) { return ((x - GUTTER) / this.width) * this.end(); },

  /** The background: mean cores in use, and when there were preemptions; it stays as long as the run does. */
  paint(run) {
    const key = `${view.run} ${this.width} ${theme.bg}`;
    if (this.picture && this.key === key) return;
    this.key = key;
    this.picture = document.createElement("canvas");
    this.picture.width = this.canvas.width;
    this.picture.height = this.canvas.height;
    const pen = this.picture.getContext("2d");
    pen.scale(this.ratio, this.ratio);
    const step = this.end() / this.width;
    const most = Math.max(run.about.cores, 1);
    const { cores, restCores } = run.series;
    pen.fillStyle = theme.muted;
    for (let x = 0; x < this.width; x++) {
      const mean = cores.mean(x * step, (x + 1) * step) + (restCores ? restCores.mean(x * step, (x + 1) * step) : 0);
      const high = Math.min(1, mean / most) * (this.height - 10);
      pen.fillRect(GUTTER + x, this.height - high, 1, high);
    }
    pen.fillStyle = theme.arrow;
    for (const at of run.at) pen.fillRect(Math.round(this.x(at)), 0, 1.5, 7);
    pen.fillStyle = theme.muted;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText("all", GUTTER - 5, this.height / 2 + 4);
  },

  draw() {
    this.paint(current());
    const pen = this.pen;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const left = this.x(view.from);
    const right = Math.max(left + 2, this.x(view.to));
    pen.globalAlpha = 0.25;
    pen.fillStyle = theme.accent;
    pen.fillRect(left, 0, right - left, this.height);
    pen.globalAlpha = 1;
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 1.5;
    pen.strokeRect(left, 0.75, right - left, this.height - 1.5);
    pen.fillStyle = theme.accent;
    for (const x of [left, right]) pen.fillRect(x - 2, this.height / 2 - 9, 4, 18);
  },

  /** What lies under the pointer: an edge of the window, the window, or neither. */
  part(x) {
    const left = this.x(view.from);
    const right = this.x(view.to);
    if (Math.abs(x - left) < 6) return "from";
    if (Math.abs(x - right) < 6) return "to";
    return x > left && x < right && right - left < this.width - 2 ? "window" : "";
  },

  cursor(event) {
    if (event.buttons) return;
    const part = this.part(event.offsetX);
    this.canvas.style.cursor = { from: "ew-resize", to: "ew-resize", window: "grab" }[part] || "crosshair";
  },

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    const part = this.part(event.offsetX);
    const start = { at: this.at(event.offsetX), from: view.from, to: view.to };
    let moved = false;
    const move = (next) => {
      const at = Math.max(0, Math.min(this.end(), this.at(next.offsetX)));
      if (Math.abs(next.offsetX - event.offsetX) > 3) moved = true;
      if (!moved) return;
      if (part === "window") show({ from: start.from + at - start.at, to: start.to + at - start.at });
      else if (part === "from") show({ from: Math.min(at, start.to - 1), to: start.to });
      else if (part === "to") show({ from: start.from, to: Math.max(at, start.from + 1) });
      else show({ from: Math.min(start.at, at), to: Math.max(start.at, at) });
    };
    const end = () => {
      this.canvas.removeEventListener("pointermove", move);
      this.canvas.removeEventListener("pointerup", end);
      this.canvas.removeEventListener("pointercancel", end);
      if (!moved && part === "") {
        const half = (view.to - view.from) / 2;
        show({ from: start.at - half, to: start.at + half });
      }
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
  },
};
