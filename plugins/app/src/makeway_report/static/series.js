// Step functions of time, with exact means and ranges over any span.

class Steps {
  /** From changes in any order: instants and amounts. */
  constructor(times, amounts) {
    const order = new Uint32Array(times.length).map((_, at) => at).sort((a, b) => times[a] - times[b]);
    const at = [0];
    const value = [0];
    let now = 0;
    for (const each of order) {
      now += amounts[each];
      if (times[each] > at[at.length - 1]) {
        at.push(times[each]);
        value.push(now);
      } else value[value.length - 1] = now;
    }
    this.at = Float64Array.from(at);
    this.value = Float64Array.from(value);
    this.area = new Float64Array(at.length);
    for (let i = 1; i < at.length; i++) this.area[i] = this.area[i - 1] + value[i - 1] * (at[i] - at[i - 1]);
    this.levels = [{ low: this.value, high: this.value }];
    for (let level = this.levels[0]; level.low.length > 1; this.levels.push(level)) level = halved(level);
    this.most = this.value.reduce((most, each) => Math.max(most, each), 0);
  }

  areaUntil(x) {
    const i = Math.max(0, upperBound(this.at, x) - 1);
    return this.area[i] + this.value[i] * (x - this.at[i]);
  }

  mean(from, to) {
    return to > from ? (this.areaUntil(to) - this.areaUntil(from)) / (to - from) : this.valueAt(from);
  }

  valueAt(x) {
    return this.value[Math.max(0, upperBound(this.at, x) - 1)];
  }

  range(from, to) {
    let i = Math.max(0, upperBound(this.at, from) - 1);
    let end = Math.max(i + 1, upperBound(this.at, to));
    if (end > i + 1 && this.at[end - 1] >= to) end--;
    let low = Infinity;
    let high = -Infinity;
    let level = 0;
    const take = (at) => {
      low = Math.min(low, this.levels[level].low[at]);
      high = Math.max(high, this.levels[level].high[at]);
    };
    while (i < end) {
      if (i & 1) take(i++);
      if (end & 1) take(--end);
      i >>= 1;
      end >>= 1;
      level++;
    }
    return [low, high];
  }
}

function halved({ low, high }) {
  const size = (low.length + 1) >> 1;
  const made = { low: new Float64Array(size), high: new Float64Array(size) };
  for (let i = 0; i < size; i++) {
    const other = Math.min(2 * i + 1, low.length - 1);
    made.low[i] = Math.min(low[2 * i], low[other]);
    made.high[i] = Math.max(high[2 * i], high[other]);
  }
  return made;
}

/** Means in equal steps of jobs that are not drawn one by one. */
class Rest {
  constructor(step, values) {
    this.step = step;
    this.values = values;
    this.area = new Float64Array(values.length + 1);
    values.forEach((value, at) => { this.area[at + 1] = this.area[at] + value * step; });
  }

  areaUntil(x) {
    const at = Math.max(0, Math.min(this.values.length, x / this.step));
    const whole = Math.floor(at);
    return this.area[whole] + (whole < this.values.length ? this.values[whole] * (at - whole) * this.step : 0);
  }

  mean(from, to) {
    return to > from ? (this.areaUntil(to) - this.areaUntil(from)) / (to - from) : 0;
  }
}

/** Cores in use, cores suspended, jobs waiting of a run. */
function seriesOf(run) {
  const cores = [[], []];
  const suspended = [[], []];
  const waiting = [[], []];
  const put = ([times, amounts], from, to, amount) => {
    times.push(from, to);
    amounts.push(amount, -amount);
  };
  for (let i = 0; i < run.start.length; i++) {
    if (run.stop[i] <= run.start[i]) continue;
    if (run.state[i] === STATE.RUNNING) put(cores, run.start[i], run.stop[i], run.placeCores[run.place[i]]);
    if (run.state[i] === STATE.SUSPENDED) put(suspended, run.start[i], run.stop[i], 1);
  }
  for (let job = 0; job < run.count; job++) {
    let since = run.submit[job];
    for (const piece of run.pieces.of(job)) {
      if (run.start[piece] > since) put(waiting, since, run.start[piece], 1);
      since = run.stop[piece];
    }
    if (!run.pieces.of(job).length && run.waitedFor[job] > 0) put(waiting, since, since + run.waitedFor[job], 1);
  }
  const rest = run.about.rest;
  return {
    cores: new Steps(...cores), suspended: new Steps(...suspended), waiting: new Steps(...waiting),
    restCores: rest && new Rest(rest.step, rest.cores), restWaiting: rest && new Rest(rest.step, rest.waiting),
  };
}
