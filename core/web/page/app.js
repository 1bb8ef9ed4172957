// What the page knows, how it hears of changes, and which view is shown.  Texts of tasks go into the page as text alone.
"use strict";

const MOST_RUNS = 20000, MOST_SECONDS = 3600;
const known = {
  engine: null, waits: null, connected: false, may_change: false, heard: 0,
  sections: { arrays: new Map(), pilots: new Map(), allocations: new Map(), sites: new Map(), dropboxes: new Map(), tasks: new Map() },
  counts: [], minutes: [], runs: [], has: new Set(),
};

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, call] of Object.entries(value)) node.addEventListener(event, call);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

// ---------------------------------------------------------------- values as people read them

const now = () => Date.now() / 1000;
function count(number) { return Number(number || 0).toLocaleString("en-GB").replaceAll(",", "\u202f"); }
function span(seconds) {
  if (seconds === undefined || seconds === null || !isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 90) return Math.round(s) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  if (s < 172800) return (s / 3600).toFixed(1) + " h";
  return Math.round(s / 86400) + " days";
}
function clock(time) {
  if (!time) return "–";
  const date = new Date(time * 1000), today = new Date().toDateString() === date.toDateString();
  const options = today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" };
  return new Intl.DateTimeFormat(undefined, options).format(date);
}
function size(bytes) {
  if (bytes === undefined || bytes === null) return "–";
  const units = ["B", "K", "M", "G", "T"];
  let unit = 0, value = bytes;
  while (value >= 1024 && unit < 4) { value /= 1024; ++unit; }
  return (unit && value < 10 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}
function words(command) {
  return (command || []).map((word) => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'").join(" ");
}
function state(name) { return el("span", { class: "state s-" + name }, name); }
function kind_of(run) {
  const array = known.sections.arrays.get(run.array || "");
  return run.tool || (run.name || "").replace(/\d+/g, "#") || (array && (array.name || (array.command || [])[0])) || "tasks";
}

// ---------------------------------------------------------------- the engine, asked

async function ask(target, options) {
  const answer = await fetch("api/" + target, options);
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error || "the engine answered with " + answer.status);
  return body;
}
function change(target, body) {
  return ask(target, { method: "POST", headers: { "X-Hpcbatch": "1", "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

let note_timer = 0;
function tell(text) {
  const note = document.getElementById("note");
  note.textContent = text;
  clearTimeout(note_timer);
  note_timer = setTimeout(() => { note.textContent = ""; }, 6000);
}

function question(text) {
  const dialog = document.getElementById("question");
  document.getElementById("question-text").textContent = text;
  return new Promise((then) => {
    const end = (answer) => { if (dialog.open) dialog.close(); then(answer); };
    document.getElementById("question-yes").onclick = () => end(true);
    document.getElementById("question-no").onclick = () => end(false);
    dialog.oncancel = () => then(false);
    dialog.showModal();
    document.getElementById("question-no").focus();
  });
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); tell("Copied: " + text); }
  catch { tell("The browser does not let this page copy; the command is: " + text); }
}
/// Its words, shown as a shell takes them: some come from the address, which others may have written.
function command(...parts) {
  const text = words(parts);
  return el("p", { class: "command" }, el("code", {}, text), el("button", { type: "button", "aria-label": "Copy: " + text, on: { click: () => copy(text) } }, "Copy"));
}

// ---------------------------------------------------------------- what changes, as it comes

function take(change) {
  if (change.page) known.may_change = change.page.may_change;
  if (change.engine) known.engine = change.engine;
  if (change.waits) known.waits = change.waits;
  // The whole picture has `minutes`: what it does not name any more has gone while we did not hear.
  if (change.minutes) for (const section of Object.values(known.sections)) section.clear();
  for (const [name, entries] of Object.entries(change.sections || {})) {
    const section = known.sections[name] || (known.sections[name] = new Map());
    for (const [key, value] of Object.entries(entries)) if (value === null) section.delete(key); else section.set(key, value);
  }
  if (change.minutes) { known.minutes = change.minutes; known.counts = []; known.runs = []; known.has = new Set(); }
  for (const point of change.counts || []) {
    known.counts.push(point);
    const last = known.minutes[known.minutes.length - 1];
    if (!last || point[0] - last[0] >= 60) known.minutes.push(point);
  }
  if (known.counts.length > MOST_SECONDS) known.counts.splice(0, known.counts.length - MOST_SECONDS);
  if (known.minutes.length > 1440) known.minutes.splice(0, known.minutes.length - 1440);
  for (const [id, array, pilot, start, end, ended, name, tool, attempt] of change.runs || []) {
    const mark = id + "@" + attempt;
    if (known.has.has(mark)) continue;
    known.has.add(mark);
    known.runs.push({ id, array, pilot, start, end, state: ended, name, tool, mark });
  }
  if (known.runs.length > MOST_RUNS) for (const old of known.runs.splice(0, known.runs.length - MOST_RUNS)) known.has.delete(old.mark);
  known.heard = now();
}

function show_link() {
  const link = document.getElementById("link");
  const engine = known.engine;
  let text = "", bad = true;
  if (!known.connected) text = "This page has lost `hpcbatch web`. What you see is old. Run it again, or wait: the page tries again by itself.";
  else if (!engine) { text = "Connecting to the engine …"; bad = false; }
  else if (engine.state === "away") text = "No engine answers. What you see is old. `hpcbatch engine start` starts one; work continues where it was.";
  else if (engine.state === "trouble") text = "The engine cannot write its store: " + (engine.message || "");
  else if (engine.state === "draining") { text = "The engine is ending: running tasks end, no others start."; bad = false; }
  link.textContent = text;
  link.hidden = text === "";
  link.className = bad ? "bad" : "";
}

function listen() {
  const stream = new EventSource("live");
  stream.onmessage = (message) => { known.connected = true; take(JSON.parse(message.data)); redraw(); };
  stream.onopen = () => { known.connected = true; redraw(); };
  stream.onerror = () => {
    known.connected = false;
    redraw();
    // After an answer that is none (too many pages, 503) a browser does not try again by itself.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

// ---------------------------------------------------------------- views

let current = null, planned = false;
function redraw() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => { planned = false; show_link(); if (current && current.update) current.update(); });
}

function place() {
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query || "") };
}
function go(path, query) {
  const text = query && [...query].length ? "?" + query : "";
  location.hash = "#/" + path + text;
}

function show() {
  const { parts, query } = place();
  const main = document.getElementById("main");
  if (current && current.leave) current.leave();
  const make = views[parts[0] || "overview"] || views.nothing;
  current = make(main, parts.slice(1), query);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === "#/" + (parts[0] || "")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const heading = main.querySelector("h1");
  document.title = (heading ? heading.textContent + " – " : "") + "hpcbatch";
  redraw();
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = document.getElementById("find").value.trim();
  if (/^\d+\.\d+$/.test(text)) go("task/" + text);
  else if (/^\d+(-\d+)?$/.test(text)) go("submission/" + text);
  else if (text) go("", new URLSearchParams({ name: text }));
});
addEventListener("hashchange", () => { show(); document.getElementById("main").focus({ preventScroll: true }); scrollTo(0, 0); });
// Durations on the page grow without news.
setInterval(redraw, 5000);
show();
listen();
