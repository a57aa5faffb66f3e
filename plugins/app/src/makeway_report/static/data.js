// Unpack what columns.py packed, and keep one run in typed arrays.

const STATE = { RUNNING: 0, SUSPENDED: 1, COMPLETING: 2 };
const LOST = 4;
const WHOLE = 240;
const BLOCK = 256;

async function inflate(text) {
  const packed = atob(text.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Whole numbers: byte planes, zigzag, perhaps differences. */
function numbersAt(bytes, [offset, count, width, delta]) {
  const made = new Float64Array(count);
  let scale = 1;
  for (let plane = 0; plane < width; plane++, scale *= 256) {
    const from = offset + plane * count;
    for (let i = 0; i < count; i++) made[i] += bytes[from + i] * scale;
  }
  let before = 0;
  for (let i = 0; i < count; i++) {
    const code = made[i];
    const value = code % 2 ? -(code + 1) / 2 : code / 2;
    made[i] = delta ? (before += value) : value;
  }
  return made;
}

function wordsAt(bytes, [offset, length]) {
  return JSON.parse(new TextDecoder().decode(bytes.subarray(offset, offset + length)));
}

function unpack(bytes, index) {
  const made = {};
  for (const [name, at] of Object.entries(index)) {
    made[name] = at.length === 2 ? wordsAt(bytes, at) : numbersAt(bytes, at);
  }
  return made;
}

/** First place in a sorted array whose value is greater than `x`. */
function upperBound(sorted, x, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where the entries of each owner lie, owners numbered from 0. */
function grouped(owners, count) {
  const starts = new Uint32Array(count + 1);
  for (const owner of owners) if (owner >= 0) starts[owner + 1]++;
  for (let i = 0; i < count; i++) starts[i + 1] += starts[i];
  const next = starts.slice();
  const listed = new Uint32Array(starts[count]);
  owners.forEach((owner, at) => { if (owner >= 0) listed[next[owner]++] = at; });
  return { of: (owner) => listed.subarray(starts[owner], starts[owner + 1]) };
}

function letterOf(at) {
  return (at >= 26 ? letterOf(Math.floor(at / 26) - 1) : "") + String.fromCharCode(65 + (at % 26));
}

class Run {
  constructor(about, columns, number) {
    this.about = about;
    this.number = number;
    this.label = about.label;
    /** A, B, C where several runs are on the page, as tables in a terminal have them. */
    this.letter = letterOf(number);
    this.nodes = columns.nodes;
    this.nodeCpus = columns.nodeCpus;
    this.end = about.end;
    this.names = {};
    for (const kind of ["user", "partition", "qos", "account", "side", "state", "limit"]) {
      this.names[kind] = columns[kind + "Names"] || [];
    }
    this.sentences = columns.sentences;
    this.reasons = columns.reasons;
    this.modes = columns.modes;
    this.whys = columns.whys;
    this.readJobs(columns);
    this.readPieces(columns);
    this.readPlaces(columns);
    this.readStories(columns);
    this.readPreemptions(columns);
  }

  readJobs(columns) {
    this.ids = Array.from(columns.ids, String);
    this.count = this.ids.length;
    this.job = {};
    const empty = new Float64Array(0);
    for (const name of ["nodes", "cpus", "lost", "restarts", "user", "partition", "qos", "account", "side", "state",
      "limit", "reason", "name"]) {
      this.job[name] = columns["job_" + name] || empty;
    }
    this.submit = this.seconds(columns.submit || empty);
    this.waitedFor = this.seconds(columns.ended || empty);
    this.byId = new Map(this.ids.map((id, at) => [id, at]));
  }

  seconds(ticks) {
    const unit = this.about.unit;
    return unit === 1 ? ticks : ticks.map((tick) => tick / unit);
  }

  readPieces(columns) {
    this.start = this.seconds(columns.start);
    const length = this.seconds(columns.length);
    this.stop = this.start.map((start, at) => start + length[at]);
    this.pieceJob = Int32Array.from(columns.pieceJob);
    this.state = Uint8Array.from(columns.pieceState, (state) => state % LOST);
    this.gone = Uint8Array.from(columns.pieceState, (state) => (state >= LOST ? 1 : 0));
    this.restart = columns.pieceRestart;
    this.pieces = grouped(this.pieceJob, this.count);
    const blocks = Math.ceil(this.start.length / BLOCK);
    this.latest = new Float64Array(blocks);
    for (let i = 0; i < this.start.length; i++) {
      const block = Math.floor(i / BLOCK);
      if (this.stop[i] > this.latest[block]) this.latest[block] = this.stop[i];
    }
  }

  readPlaces(columns) {
    this.place = new Int32Array(this.start.length);
    let known = 0;
    columns.place.forEach((age, at) => { this.place[at] = age === 0 ? known++ : known - age; });
    const ranges = columns.placeRanges;
    this.rangesFrom = new Uint32Array(ranges.length + 1);
    for (let i = 0; i < ranges.length; i++) this.rangesFrom[i + 1] = this.rangesFrom[i] + ranges[i];
    this.placeCores = columns.placeCores;
    this.rangeFirst = Int32Array.from(columns.rangeFirst);
    this.rangeCount = Int32Array.from(columns.rangeCount);
    this.rangeTop = Uint8Array.from(columns.rangeTop);
    this.rangeHeight = Uint8Array.from(columns.rangeHeight);
  }

  readStories(columns) {
    this.waits = {
      from: this.seconds(columns.waitFrom), length: this.seconds(columns.waitLength), reason: columns.waitReason,
      of: grouped(columns.waitJob, this.count).of,
    };
    this.told = {
      at: this.seconds(columns.toldAt), outcome: columns.toldOutcome, text: columns.toldText, of: grouped(columns.toldJob, this.count).of,
    };
  }

  readPreemptions(columns) {
    this.at = this.seconds(columns.preemptAt);
    this.preemptor = Int32Array.from(columns.preemptor);
    this.victim = Int32Array.from(columns.victim);
    this.mode = columns.preemptMode;
    this.why = columns.preemptWhy;
    this.cost = columns.preemptLost;
    this.byPreemptor = grouped(this.preemptor, this.count);
    this.byVictim = grouped(this.victim, this.count);
  }

  /** Call `look` for each piece that overlaps a span of time; stop when it returns true. */
  eachPiece(from, to, look) {
    const last = upperBound(this.start, to);
    for (let block = 0; block * BLOCK < last; block++) {
      if (this.latest[block] < from) continue;
      const end = Math.min(last, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < end; i++) {
        if (this.stop[i] >= from && look(i)) return;
      }
    }
  }

  word(kind, job) {
    return this.names[kind][this.job[kind][job]];
  }

  firstStart(job) {
    const pieces = this.pieces.of(job);
    return pieces.length ? this.start[pieces[0]] : null;
  }

  ended(job) {
    const pieces = this.pieces.of(job);
    return pieces.length ? this.stop[pieces[pieces.length - 1]] : this.submit[job] + this.waitedFor[job];
  }

  /** The piece of a job that ends at an instant or runs then; with `after`, the first that starts from then on. */
  pieceAt(job, at, after) {
    let found = -1;
    for (const piece of this.pieces.of(job)) {
      if (after) {
        if (this.stop[piece] > at || this.start[piece] >= at) return piece;
      } else if (this.start[piece] <= at && (found < 0 || this.start[piece] < at)) {
        found = piece;
      }
    }
    return found;
  }
}
