// Times, numbers and elements.

const MINUS = "\u2212";

function duration(seconds) {
  const whole = Math.round(Math.abs(seconds));
  if (Math.abs(seconds) < 60) return `${Math.round(seconds * 100) / 100} s`;
  const days = Math.floor(whole / 86400);
  const hours = Math.floor((whole % 86400) / 3600);
  const rest = `${two(Math.floor((whole % 3600) / 60))}:${two(whole % 60)}`;
  return days ? `${days} d ${two(hours)}:${rest}` : `${hours}:${rest}`;
}

function two(number) {
  return String(number).padStart(2, "0");
}

function number(value, digits = 0) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function count(value, word) {
  return `${number(value)} ${word}${value === 1 ? "" : "s"}`;
}

function hours(coreSeconds) {
  return number(coreSeconds / 3600, Math.abs(coreSeconds) < 360000 ? 1 : 0);
}

/** An instant: a date where the workload has dates, else the day and time since second 0. */
function instant(seconds, epoch, { date = true, clock = true, exact = true } = {}) {
  const whole = Math.floor(seconds + 1e-6);
  if (epoch !== null && epoch !== undefined) {
    const iso = new Date((epoch + seconds) * 1000).toISOString();
    const time = iso.slice(11, exact ? 19 : 16);
    return [date ? iso.slice(0, 10) : "", clock ? time : ""].filter(Boolean).join(" ");
  }
  const day = Math.floor(whole / 86400);
  const left = whole - day * 86400;
  const time = `${two(Math.floor(left / 3600))}:${two(Math.floor((left % 3600) / 60))}`
    + (exact ? `:${two(left % 60)}` : "");
  return [date ? `day ${day}` : "", clock ? time : ""].filter(Boolean).join(" ");
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
  345600, 604800, 1209600, 2592000, 5184000, 7776000, 15552000, 31536000, 63072000, 157680000];

/** Round instants in a span, at least `room` pixels apart. */
function ticks(from, to, width, epoch, room = 110) {
  const wanted = ((to - from) * room) / Math.max(width, 1);
  const step = STEPS.find((each) => each >= wanted) || STEPS[STEPS.length - 1];
  const shift = (epoch || 0) % step;
  const made = [];
  for (let at = Math.ceil((from + shift) / step) * step - shift; at <= to; at += step) made.push(at);
  return { step, at: made };
}

function tickText(at, step, epoch) {
  if (step >= 86400) return instant(at, epoch, { clock: false });
  const onDay = ((at + (epoch || 0)) % 86400) === 0;
  if (onDay) return instant(at, epoch, { clock: false });
  return instant(at, epoch, { date: false, exact: step < 60 });
}

/** An element with properties, attributes (`aria-label`) and children; text stays text. */
function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key.includes("-") || key === "role" || key === "for" || key === "colspan") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** A name that a user chose, kept apart from the direction of the text around it. */
function named(text) {
  return element("bdi", {}, text);
}

function byId(id) {
  return document.getElementById(id);
}
