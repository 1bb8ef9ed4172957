// One function a view: it fills `main` and returns what keeps it up to date.
"use strict";

const views = {};
const STATES = ["waiting", "held", "running", "done", "failed", "cancelled"];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// ---------------------------------------------------------------- pieces

function table(caption, columns, rows, empty) {
  if (rows.length === 0) return el("p", { class: "empty" }, empty || "Nothing here.");
  const side = (column) => [column.number ? "number" : "", column.narrow ? "narrow" : ""].join(" ").trim() || undefined;
  // What a narrow window does not show is reached by keys too.
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", { class: side(column), scope: "col" }, column.name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((column) => el("td", { class: side(column) }, column.of(row))))))));
}

function bar(counts, total) {
  const parts = ["done", "failed", "cancelled", "running"].filter((name) => counts[name]);
  const text = STATES.filter((name) => counts[name]).map((name) => count(counts[name]) + " " + name).join(", ");
  return el("div", { class: "bar", role: "img", "aria-label": text, title: text }, parts.map((name) => {
    const part = el("i", { class: "s-" + name });
    part.style.width = 100 * counts[name] / Math.max(1, total) + "%";
    return part;
  }));
}

function time_left(array) {
  const ended = array.counts.done + array.counts.failed + array.counts.cancelled, left = array.total - ended;
  if (left === 0 || array.state !== "running" || !array.started_at || ended === 0) return "";
  return "about " + span((now() - array.started_at) / ended * left) + " left";
}

function failure(task) {
  if (task.state !== "failed") return "";
  const code = task.signal ? "signal " + task.signal : task.exit_code ? "exit " + task.exit_code : "";
  return [task.failure === "exit" ? "" : (task.failure || "").replaceAll("_", " "), code].filter(Boolean).join(", ");
}

/// The changes that fit a task or a submission, each asked for once more where it ends work.
function changes(id, has) {
  const button = (verb, text, warning) => el("button", { type: "button", on: { click: async (event) => {
    if (warning && !await question(warning)) return;
    event.target.disabled = true;
    try {
      const body = await change("tasks/" + verb, { ids: [id] });
      tell(count(body.tasks) + (body.tasks === 1 ? " task: " : " tasks: ") + verb);
    } catch (error) { tell(error.message); }
    event.target.disabled = false;
  } } }, text);
  return known.may_change && el("div", { class: "actions" },
    has.open && button("cancel", "Cancel", "Cancel what has not ended of " + id + "? Running tasks are ended."),
    has.waiting && button("hold", "Hold"), has.held && button("release", "Release"), has.failed && button("retry", "Retry what failed"));
}

// ---------------------------------------------------------------- overview

function submissions(query) {
  const wanted = query.get("name"), states = query.get("state");
  return [...known.sections.arrays.values()]
    .filter((array) => (!states || array.state === states) && (!wanted || [array.name, array.tool, words(array.command), array.client].join(" ").includes(wanted)))
    .sort((a, b) => parseInt(b.id, 10) - parseInt(a.id, 10));
}

function submission_table(list, empty) {
  return table("Submissions, newest first", [
    { name: "Id", of: (a) => el("a", { href: "#/submission/" + a.id }, a.id) },
    { name: "Work", of: (a) => a.name || a.tool || words(a.command) || "–" },
    { name: "State", of: (a) => state(a.state) },
    { name: "Progress", of: (a) => [bar(a.counts, a.total), el("span", { class: "quiet" }, time_left(a))] },
    { name: "Tasks", number: true, of: (a) => count(a.total) },
    { name: "Failed", number: true, of: (a) => a.counts.failed ? el("a", { href: "#/tasks?state=failed&array=" + a.id }, count(a.counts.failed)) : "" },
    { name: "Submitted", narrow: true, of: (a) => clock(a.submitted_at) },
  ], list, empty);
}

function plot_of(node, title, names, data, old) {
  if (old && old.root.isConnected) { old.setData(data); return old; }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const hours = (plot, times) => times.map((time) => new Date(time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: width < 900 ? "2-digit" : undefined }));
  const width = data[0][data[0].length - 1] - data[0][0];
  const axis = { stroke: color("quiet"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line") } };
  node.replaceChildren();
  return new uPlot({
    width: node.clientWidth || 600, height: 240, title,
    series: [{}, ...names.map((name) => ({ label: name, stroke: color(name), width: 1.5, fill: color(name) + (dark ? "33" : "22"), points: { show: false } }))],
    axes: [{ ...axis, values: hours, space: 90 }, { ...axis, size: 72 }],
  }, data, node);
}

views.overview = (main, parts, query) => {
  const tiles = el("ul", { class: "tiles" }), plot = el("div", { class: "plot", role: "img", "aria-label": "Tasks over time; the numbers stand above" });
  const list = el("section", {}), range = el("select", { "aria-label": "Time shown" }, el("option", { value: "hour" }, "Last hour"), el("option", { value: "day" }, "Last day"));
  const which = el("select", { "aria-label": "Plot" }, el("option", { value: "open" }, "Waiting and running"), el("option", { value: "ended" }, "Ended"));
  let chart = null, shown = "";
  const set = (name, value) => { const next = new URLSearchParams(query); if (value) next.set(name, value); else next.delete(name); go("", next); };
  const filter = el("select", { "aria-label": "State of submissions", on: { change: (event) => set("state", event.target.value) } },
    el("option", { value: "" }, "All states"), STATES.map((name) => el("option", { value: name, selected: query.get("state") === name }, name)));
  const by_name = query.get("name") && el("button", { type: "button", on: { click: () => set("name", "") } }, "“" + query.get("name") + "” ×");
  fill(main, el("h1", {}, "Overview"), tiles,
    el("section", { class: "card" }, el("div", { class: "filters" }, range, which), plot),
    el("section", { class: "card" }, el("div", { class: "filters" }, el("h2", {}, "Submissions"), filter, by_name), list, command("hpcbatch", "list")));
  const draw_plot = () => {
    const points = range.value === "hour" ? known.counts : known.minutes;
    const names = which.value === "open" ? ["waiting", "running"] : ["done", "failed", "cancelled"];
    const data = [points.map((p) => p[0]), ...names.map((name) => points.map((p) => p[1 + STATES.indexOf(name)]))];
    const what = range.value + which.value;
    if (what !== shown) chart = null;
    shown = what;
    if (points.length > 1) chart = plot_of(plot, "Tasks " + (which.value === "open" ? "that have not ended" : "that have ended"), names, data, chart);
    else plot.replaceChildren(el("p", { class: "empty" }, "The plot begins now."));
  };
  const resized = () => { if (chart) chart.setSize({ width: plot.clientWidth, height: 240 }); };
  const colors = matchMedia("(prefers-color-scheme: dark)"), recolored = () => { chart = null; redraw(); };
  range.addEventListener("change", draw_plot); which.addEventListener("change", draw_plot);
  addEventListener("resize", resized); colors.addEventListener("change", recolored);
  let told = "";
  return {
    update() {
      const tasks = (known.engine && known.engine.tasks) || {}, pilots = (known.engine && known.engine.pilots) || {};
      const tile = (name, value, to) => el("li", {}, el("a", { class: "s-" + name, href: to }, el("b", {}, value), name));
      // Held tasks are rare; a tile of none would only take room.
      fill(tiles, STATES.filter((name) => name !== "held" || tasks.held).map((name) => tile(name, known.engine ? count(tasks[name]) : "–", "#/tasks?state=" + name)),
        el("li", {}, el("a", { href: "#/where" }, el("b", {}, known.engine ? count(pilots.running) : "–"), "pilots running")),
        el("li", {}, el("a", { href: "#/waits" }, el("b", {}, known.engine ? count(pilots.queued) : "–"), "pilots in queues")));
      draw_plot();
      const found = submissions(query), text = JSON.stringify(found) + Math.floor(now() / 5);
      // The engine's counts come first.
      const none = known.engine && !Object.values(tasks).some((number) => number > 0);
      const empty = known.sections.arrays.size ? "No submission fits the filter." : none ? "Nothing was submitted yet: hpcbatch submit --array 1-100 -- true" : "Loading …";
      if (text !== told) fill(list, submission_table(found.slice(0, 200), empty));
      told = text;
    },
    leave() { removeEventListener("resize", resized); colors.removeEventListener("change", recolored); },
  };
};

// ---------------------------------------------------------------- what ran where

/// Drawn in the color of their state, not of their kind.
const ENDS = ["failed", "cancelled"];
const PALETTE = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#72b7b2", "#eeca3b", "#ff9da6", "#9d755d"];

/// Rows of pilots, each with as many lines as it ran tasks at once, from `from` to `until`.
function rows_of(from, until) {
  const pilots = new Map();
  const runs = known.runs.filter((run) => run.end >= from && run.start <= until);
  for (const task of known.sections.tasks.values())
    if (task.started_at <= until) runs.push({ id: task.id, array: task.array, pilot: task.pilot, start: task.started_at, end: now(), state: "running", name: task.name, tool: task.tool });
  runs.sort((a, b) => a.start - b.start);
  for (const run of runs) {
    if (!pilots.has(run.pilot)) pilots.set(run.pilot, { name: run.pilot, free: [], runs: [] });
    const pilot = pilots.get(run.pilot);
    let line = pilot.free.findIndex((end) => end <= run.start + 0.001);
    if (line < 0) line = pilot.free.push(0) - 1;
    pilot.free[line] = run.end;
    pilot.runs.push({ ...run, line });
  }
  for (const pilot of known.sections.pilots.values()) if (!pilots.has(pilot.name)) pilots.set(pilot.name, { name: pilot.name, free: [0], runs: [] });
  return [...pilots.values()].sort((a, b) => a.name < b.name ? -1 : 1);
}

views.where = (main, parts, query) => {
  let width = Number(query.get("seconds")) || 600, until = Number(query.get("until")) || 0;  // 0: goes on with the time
  const canvas = el("canvas", { class: "where", tabindex: "0", role: "img", "aria-label": "Pilots over time. Arrow keys move, plus and minus zoom, Home goes to now. The table below has the same in numbers." });
  const hint = el("p", { id: "hint", class: "quiet", "aria-live": "polite" }, "Point at a task to see its id; click to open it."), keys = el("ul", { class: "keys" }), numbers = el("div", {});
  const button = (text, label, call) => el("button", { type: "button", "aria-label": label, on: { click: () => { call(); keep(); } } }, text);
  let drawn = [];
  const end = () => until || now();
  const zoom = (factor) => { const middle = end() - width / 2; width = Math.min(86400, Math.max(2, width * factor)); if (until) until = Math.min(now(), middle + width / 2); };
  const move = (part) => { until = end() + width * part; if (until >= now()) until = 0; };
  const keep = () => { const next = new URLSearchParams({ seconds: Math.round(width) }); if (until) next.set("until", Math.round(until)); history.replaceState(null, "", "#/where?" + next); redraw(); };
  fill(main, el("h1", {}, "What ran where"),
    el("section", { class: "card" }, el("div", { class: "actions" }, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("←", "Earlier", () => move(-0.5)), button("→", "Later", () => move(0.5)), button("Now", "Go to now", () => { until = 0; })),
      canvas, hint, keys),
    el("section", { class: "card" }, el("h2", {}, "Pilots"), numbers, command("hpcbatch", "pilots")));
  canvas.addEventListener("keydown", (event) => {
    const calls = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => zoom(0.5), "-": () => zoom(2), Home: () => { until = 0; } };
    if (calls[event.key]) { event.preventDefault(); calls[event.key](); keep(); }
  });
  canvas.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8); keep(); } }, { passive: false });
  const at = (event) => { const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top; return drawn.find((d) => x >= d.x && x <= d.x + d.w && y >= d.y && y <= d.y + d.h); };
  canvas.addEventListener("pointermove", (event) => { const found = at(event); hint.textContent = found ? "Task " + found.run.id + ", " + kind_of(found.run) + " on " + found.run.pilot + ": " + found.run.state + ", " + span(found.run.end - found.run.start) + " from " + clock(found.run.start) : "Point at a task to see its id; click to open it."; });
  canvas.addEventListener("click", (event) => { const found = at(event); if (found) go("task/" + found.run.id); });
  const draw = () => {
    const rows = rows_of(end() - width, end()), from = end() - width, scale = devicePixelRatio || 1;
    const lines = rows.reduce((sum, row) => sum + row.free.length, 0);
    // However many there are: browsers draw nothing on a canvas of more than 32,767 pixels.
    const most = 14000 / scale, named = rows.length <= 300, gap = named ? 18 : Math.min(1, most / rows.length);
    const high = Math.min(14, Math.min(most, Math.max(900, 12 * rows.length)) / Math.max(1, lines)), thick = high > 3 ? high - 1 : Math.max(1, high);
    const total = 24 + lines * high + rows.length * gap;
    const wide = canvas.clientWidth || 600;
    canvas.style.height = total + "px";
    canvas.width = wide * scale; canvas.height = total * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    const x_of = (time) => (time - from) / width * wide, kinds = new Map();
    pen.strokeStyle = color("line"); pen.fillStyle = color("quiet");
    const steps = Math.max(2, Math.min(8, Math.floor(wide / 130)));
    for (let i = 0; i < steps; ++i) {
      const x = i * wide / steps;
      pen.beginPath(); pen.moveTo(x + 0.5, 0); pen.lineTo(x + 0.5, total); pen.stroke();
      pen.fillText(clock(from + i * width / steps), x + 4, 12);
    }
    drawn = [];
    let y = 24;
    for (const row of rows) {
      pen.fillStyle = color("text");
      if (named) pen.fillText(row.name, 4, y + 10);
      y += named ? gap - 4 : 0;
      for (const run of row.runs) {
        const kind = kind_of(run);
        if (!kinds.has(kind)) kinds.set(kind, PALETTE[kinds.size % PALETTE.length]);
        const x = Math.max(0, x_of(run.start)), w = Math.max(1, x_of(Math.min(run.end, end())) - x), top = y + run.line * high;
        pen.globalAlpha = run.state === "running" ? 0.6 : 1;
        pen.fillStyle = ENDS.includes(run.state) ? color(run.state) : kinds.get(kind);
        pen.fillRect(x, top, w > 3 ? w - 1 : w, thick);
        drawn.push({ x, y: top, w, h: Math.max(1, high), run });
      }
      pen.globalAlpha = 1;
      y += row.free.length * high + (named ? 4 : gap);
    }
    fill(keys, [...kinds].map(([kind, shade]) => { const mark = el("i", {}); mark.style.background = shade; return el("li", {}, mark, kind); }), kinds.size ? ENDS.map((name) => { const mark = el("i", {}); mark.style.background = color(name); return el("li", {}, mark, name); }) : "");
    if (rows.length === 0) { pen.fillStyle = color("quiet"); pen.fillText("No pilot runs, and none ran in this time.", 8, 22); }
    const runs_by = new Map(rows.map((row) => [row.name, row.runs]));
    fill(numbers, table("Pilots that run", [
      { name: "Pilot", of: (p) => p.name }, { name: "Site", of: (p) => p.site }, { name: "Node", of: (p) => p.node || "–" },
      { name: "Tasks now", number: true, of: (p) => count(p.tasks) }, { name: "Cpus", number: true, of: (p) => p.cpus },
      { name: "GPUs", narrow: true, of: (p) => Object.entries(p.gpus || {}).map(([kind, n]) => n + " " + kind).join(", ") },
      { name: "In the picture", number: true, narrow: true, of: (p) => count((runs_by.get(p.name) || []).length) }, { name: "Ends", narrow: true, of: (p) => clock(p.ends_at) },
    ], [...known.sections.pilots.values()], "No pilot runs at the moment."));
  };
  addEventListener("resize", draw);
  return { update: draw, leave() { removeEventListener("resize", draw); } };
};

// ---------------------------------------------------------------- tasks

function task_table(list, empty) {
  return table("Tasks, newest first", [
    { name: "Id", of: (t) => t.tasks > 1 ? t.id : el("a", { href: "#/task/" + t.id }, t.id) },
    { name: "State", of: (t) => state(t.state) },
    { name: "Why", of: (t) => failure(t) },
    { name: "Item", of: (t) => t.item || t.name || t.tool || "" },
    { name: "Tasks", number: true, narrow: true, of: (t) => t.tasks > 1 ? count(t.tasks) : "" },
    { name: "Node", narrow: true, of: (t) => t.node || "" },
    { name: "Ran", number: true, of: (t) => t.started_at ? span((t.ended_at || now()) - t.started_at) : "" },
    { name: "Memory", number: true, narrow: true, of: (t) => t.peak_memory ? size(t.peak_memory) : "" },
  ], list, empty);
}

views.tasks = (main, parts, query) => {
  const list = el("div", {}, el("p", { class: "empty" }, "Loading …")), more = el("button", { type: "button" }, "Older");
  const set = (name, value) => { const next = new URLSearchParams(query); if (value) next.set(name, value); else next.delete(name); go("tasks", next); };
  const field = (name, label) => el("input", { "aria-label": label, placeholder: label, value: query.get(name) || "", on: { change: (event) => set(name, event.target.value.trim()) } });
  fill(main, el("h1", {}, "Tasks"), el("section", { class: "card" },
    el("div", { class: "filters" },
      el("select", { "aria-label": "State", on: { change: (event) => set("state", event.target.value) } }, el("option", { value: "" }, "All states"), STATES.map((name) => el("option", { value: name, selected: query.get("state") === name }, name))),
      field("array", "Submission id"), field("failure", "Failure, e.g. oom_task or exit:3")),
    list, el("div", { class: "actions" }, more), command("hpcbatch", "list", ...["state", "failure"].flatMap((name) => query.get(name) ? ["--" + name, query.get(name)] : []), ...(query.get("array") ? ["--", query.get("array")] : []))));
  let all = [], is_gone = false;
  const load = async (before) => {
    const words_of = new URLSearchParams({ limit: "100", full: "1" });
    for (const name of ["state", "array", "failure"]) if (query.get(name)) words_of.set(name, query.get(name));
    if (before) words_of.set("before", before);
    try {
      const body = await ask("tasks?" + words_of);
      if (is_gone) return;
      all = before ? all.concat(body.tasks) : body.tasks;
      more.hidden = body.tasks.length < 100;
      fill(list, task_table(all, "No task fits these filters."));
    } catch (error) { if (!is_gone) fill(list, el("p", { class: "empty" }, error.message)); }
  };
  more.hidden = true;
  more.addEventListener("click", () => load(all[all.length - 1].id));
  load();
  return { leave() { is_gone = true; } };
};

views.submission = (main, parts) => {
  const id = parts[0] || "", head = el("div", {}), why = el("div", {}), list = el("div", {});
  // Counts come with the stream.  What the engine has to look up is asked for every few seconds at most, and once more at the end.
  let is_gone = false, is_asking = false, told = "", looked_at = 0, looked_in = "", is_due = true;
  fill(main, el("h1", {}, "Submission " + id), el("section", { class: "card" }, head), el("section", { class: "card" }, el("h2", {}, "Explanation"), why, command("hpcbatch", "explain", id)),
    el("section", { class: "card" }, el("h2", {}, "Tasks"), list, /^\d+$/.test(id) ? el("p", {}, el("a", { href: "#/tasks?array=" + id }, "All its tasks, with filters")) : ""));
  const draw_head = (array) => {
    const failed = array.counts.failed + array.counts.cancelled;
    fill(head, bar(array.counts, array.total),
        el("dl", {}, el("dt", {}, "State"), el("dd", {}, state(array.state), " ", time_left(array)), el("dt", {}, "Tasks"), el("dd", {}, STATES.filter((name) => array.counts[name]).map((name) => count(array.counts[name]) + " " + name).join(", ")),
          el("dt", {}, "Work"), el("dd", {}, el("code", {}, array.tool || words(array.command) || array.name || "")), el("dt", {}, "From"), el("dd", {}, array.client || "–"),
          el("dt", {}, "Submitted"), el("dd", {}, clock(array.submitted_at)), el("dt", {}, "Started"), el("dd", {}, clock(array.started_at)), el("dt", {}, "Ended"), el("dd", {}, clock(array.ended_at))),
        changes(id, { open: array.counts.waiting + array.counts.held + array.counts.running > 0, waiting: array.counts.waiting > 0, held: array.counts.held > 0, failed: failed > 0 }));
  };
  const look = async () => {
    const known_one = known.sections.arrays.get(id);
    is_asking = true; is_due = false; looked_at = now(); looked_in = known_one ? known_one.state : "";
    try {
      if (!known_one) { const array = await ask("arrays/" + id); if (is_gone) return; draw_head(array); }
      if (/^\d+$/.test(id)) {
        const said = await ask("tasks/" + id + "/explain");
        if (!is_gone) fill(why, el("p", {}, said.text), el("ul", {}, (said.details || []).map((line) => el("li", {}, line))),
          table("How tasks failed", [{ name: "Failure", of: (f) => (f.failure || "").replaceAll("_", " ") + (f.exit_code ? ", exit " + f.exit_code : "") + (f.signal ? ", signal " + f.signal : "") }, { name: "Tasks", number: true, of: (f) => count(f.tasks) }, { name: "First", of: (f) => el("a", { href: "#/task/" + f.first }, f.first) }, { name: "Message", of: (f) => f.message || "" }], said.failures || [], " "));
      } else fill(why, el("p", {}, "Several submissions that came together: ", id.split("-").map((one) => el("a", { href: "#/submission/" + one }, one + " "))));
      const tasks = await ask("tasks?limit=50&full=1&array=" + id.split("-")[0]);
      if (!is_gone) fill(list, task_table(tasks.tasks, "It has no tasks."));
    } catch (error) { if (!is_gone) fill(head, el("p", { class: "empty" }, error.message)); }
    is_asking = false;
  };
  return {
    update() {
      const one = known.sections.arrays.get(id), text = one ? JSON.stringify(one.counts) : "";
      if (text !== told) { told = text; is_due = true; if (one) draw_head(one); }
      if (is_due && !is_asking && (now() - looked_at > 3 || (one && one.state !== looked_in))) look();
    },
    leave() { is_gone = true; },
  };
};

views.task = (main, parts) => {
  const id = parts[0] || "", head = el("div", {}), why = el("div", {}), tries = el("div", {}), out = el("pre", { tabindex: "0", role: "region", "aria-label": "Standard output" }), errors = el("pre", { tabindex: "0", role: "region", "aria-label": "Standard error" });
  const stop = new AbortController(), array = id.split(".")[0];
  fill(main, el("h1", {}, "Task " + id), el("section", { class: "card" }, head), el("section", { class: "card" }, el("h2", {}, "Explanation"), why, command("hpcbatch", "explain", id)), tries,
    el("section", { class: "card" }, el("h2", {}, "Output"), out, el("h2", {}, "Errors"), errors, command("hpcbatch", "log", id)), el("p", {}, el("a", { href: "#/submission/" + array }, "Submission " + array)));
  const decoder = { stdout: new TextDecoder(), stderr: new TextDecoder() }, panes = { stdout: out, stderr: errors };
  const add = (stream, text) => {
    const pane = panes[stream] || out, at_end = pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 8;
    pane.append(text);
    // A page is no place for a gigabyte: the newest part stays.
    if (pane.textContent.length > 400000) pane.textContent = "… (the beginning: hpcbatch log " + id + ")\n" + pane.textContent.slice(-200000);
    if (at_end) pane.scrollTop = pane.scrollHeight;
  };
  const load = async () => {
    const task = await ask("tasks/" + id, { signal: stop.signal }), line = (name, value) => value === undefined || value === "" ? [] : [el("dt", {}, name), el("dd", {}, value)];
    const needs = Object.entries(task.needs || {}).map(([name, value]) => name + " " + (name === "memory" || name === "disk" ? size(value) : name === "time" ? span(value) : typeof value === "object" ? JSON.stringify(value) : value)).join(", ");
    fill(head, el("dl", {}, line("State", el("span", {}, state(task.state), " ", failure(task))), line("Message", task.message), line("Item", task.item), line("Work", el("code", {}, task.tool || words(task.command))), line("Folder", task.directory), line("Asked for", needs),
      line("Used", task.ended_at ? "cpu " + span(task.cpu_s) + " in " + span(task.run_s) + ", memory " + size(task.peak_memory) : undefined), line("Where", [task.site, task.node, task.pilot].filter(Boolean).join(" / ")),
      line("Submitted", clock(task.submitted_at)), line("Started", task.started_at ? clock(task.started_at) + ", after " + span(task.started_at - task.submitted_at) : undefined), line("Ended", task.ended_at ? clock(task.ended_at) : undefined)),
      changes(id, { open: !task.ended_at && task.state !== "cancelled", waiting: task.state === "waiting", held: task.state === "held", failed: ["failed", "cancelled"].includes(task.state) }));
    const said = await ask("tasks/" + id + "/explain", { signal: stop.signal });
    fill(why, el("p", {}, said.text), el("ul", {}, (said.details || []).map((one) => el("li", {}, one))));
    const attempts = task.attempts || [];
    fill(tries, attempts.length > 0 && el("section", { class: "card" }, el("h2", {}, "Earlier attempts"), table("Attempts before the last one", [{ name: "Attempt", number: true, of: (a) => a.attempt }, { name: "Ended as", of: (a) => (a.failure || "").replaceAll("_", " ") }, { name: "Node", of: (a) => a.node || "" }, { name: "Message", of: (a) => a.message || "" }], attempts)));
    return task;
  };
  const follow = async () => {
    const answer = await fetch("api/tasks/" + id + "/log?follow=1", { signal: stop.signal });
    if (!answer.ok) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", has_ended = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line) continue;
        const piece = JSON.parse(line);
        if (piece.base64) add(piece.stream, decoder[piece.stream].decode(Uint8Array.from(atob(piece.base64), (c) => c.charCodeAt(0)), { stream: true }));
        if (piece.end) has_ended = true;
      }
    }
    if (!out.textContent) fill(out, el("span", { class: "quiet" }, has_ended ? "It printed nothing that was kept." : ""));
    if (has_ended) await load();
  };
  load().then(follow).catch((error) => { if (!stop.signal.aborted) fill(head, el("p", { class: "empty" }, error.message)); });
  return { leave() { stop.abort(); } };
};

// ---------------------------------------------------------------- waits, efficiency, sites, drop boxes

views.waits = (main) => {
  const shapes = el("div", {}), queued = el("div", {});
  fill(main, el("h1", {}, "Waits in queues"), el("section", { class: "card" }, el("h2", {}, "Pilots in queues"), queued), el("section", { class: "card" }, el("h2", {}, "A pilot that is asked for now"), shapes, command("hpcbatch", "waits")));
  return { update() {
    const waits = known.waits || { shapes: [], queued: [] };
    fill(queued, table("Allocations that wait, and when they should start", [
      { name: "Allocation", of: (q) => q.name }, { name: "Batch job", of: (q) => q.batch_id || "–" }, { name: "Shape", of: (q) => q.site + "/" + q.shape }, { name: "Waited", number: true, of: (q) => span(q.waited) },
      { name: "Half by", of: (q) => q.start_50 ? clock(q.start_50) : "–" }, { name: "9 of 10 by", of: (q) => q.start_90 ? clock(q.start_90) : "–" }, { name: "Message", of: (q) => q.message || "" }], waits.queued || [], "No pilot waits in a queue."));
    fill(shapes, table("How long a pilot would wait", [
      { name: "Shape", of: (s) => s.site + "/" + s.shape }, { name: "Half within", number: true, of: (s) => s.wait_50 === undefined ? "–" : span(s.wait_50) }, { name: "9 of 10 within", number: true, of: (s) => s.wait_90 === undefined ? "–" : span(s.wait_90) },
      { name: "From", of: (s) => s.by || "" }, { name: "Message", of: (s) => s.message || "" }, { name: "Came within", number: true, narrow: true, of: (s) => s.score && s.score.by_90 !== undefined ? Math.round(100 * s.score.by_90) + " % of " + count(s.score.waits) : "" }], waits.shapes || [], known.waits ? "There is no shape." : "Loading …"));
  } };
};

views.efficiency = (main, parts, query) => {
  const days = query.get("days") || "7", by = query.get("by") || "kind", body = el("div", {}, el("p", { class: "empty" }, "Loading …"));
  let is_gone = false;
  const set = (name, value) => { const next = new URLSearchParams(query); next.set(name, value); go("efficiency", next); };
  const choice = (name, label, now_is, values) => el("select", { "aria-label": label, on: { change: (event) => set(name, event.target.value) } }, values.map(([value, text]) => el("option", { value, selected: value === now_is }, text)));
  fill(main, el("h1", {}, "Efficiency"), el("section", { class: "card" }, el("div", { class: "filters" }, choice("days", "Days", days, [["1", "Today"], ["7", "7 days"], ["30", "30 days"]]), choice("by", "Rows", by, [["kind", "By kind of task"], ["site", "By site"], ["client", "By client"], ["day", "By day"]])), body, command("hpcbatch", "report", "--since", days + "d", "--by", by)));
  const share = (part, whole) => whole > 0 ? Math.round(100 * part / whole) + " %" : "–", hours = (value) => value >= 10 ? count(Math.round(value)) : (value || 0).toFixed(value >= 0.1 || !value ? 1 : 3);
  ask("report?by=" + encodeURIComponent(by) + "&since=" + Math.floor(now() - 86400 * (Number(days) - 1))).then((report) => {
    if (is_gone) return;
    const columns = [{ name: by === "kind" ? "Kind" : by === "day" ? "Day" : by === "site" ? "Site" : "Client", of: (r) => r.key }, { name: "Runs", number: true, of: (r) => count(r.runs) }, { name: "Failed", number: true, of: (r) => r.failed ? count(r.failed) : "" },
      { name: "Cpu hours asked", number: true, of: (r) => hours(r.cpu_asked_h) }, { name: "Used", number: true, of: (r) => share(r.cpu_h, r.cpu_asked_h) }, { name: "Memory used", number: true, of: (r) => share(r.memory_gb_h, r.memory_asked_gb_h) },
      { name: "Lost hours", number: true, narrow: true, of: (r) => r.lost_h > 0.005 ? hours(r.lost_h) : "" }, { name: "Waited hours", number: true, narrow: true, of: (r) => hours(r.wait_h) }];
    fill(body, el("dl", {}, el("dt", {}, "Pilots held"), el("dd", {}, report.held_cpu_h === undefined ? "–" : hours(report.held_cpu_h) + " cpu hours, of which tasks asked for " + share(report.total.cpu_asked_h, report.held_cpu_h)), el("dt", {}, "Batch jobs"), el("dd", {}, count((report.batch_jobs || []).reduce((sum, one) => sum + one.jobs, 0)) + " for " + count(report.total.runs) + " runs")),
      (report.advice || []).length ? [el("h2", {}, "What would save most"), el("ul", {}, report.advice.map((one) => el("li", {}, one.text)))] : "", table("What tasks asked for and used", columns, report.rows.slice(0, 100), "Nothing ended in this time."));
  }).catch((error) => { if (!is_gone) fill(body, el("p", { class: "empty" }, error.message)); });
  return { leave() { is_gone = true; } };
};

views.sites = (main) => {
  const body = el("div", {}), jobs = el("div", {});
  fill(main, el("h1", {}, "Sites"), body, el("section", { class: "card" }, el("h2", {}, "Batch jobs"), jobs, command("hpcbatch", "allocations")));
  const resume = async (name) => {
    if (!await question("Ask site " + name + " for batch jobs again now?")) return;
    try { const said = await change("sites/" + encodeURIComponent(name) + "/resume", {}); tell(said.shapes ? said.shapes + " paused shapes go on" : "nothing was paused"); } catch (error) { tell(error.message); }
  };
  let told = "";
  return { update() {
    const sites = [...known.sections.sites.values()], text = JSON.stringify(sites);
    if (text !== told || !body.firstChild) fill(body, sites.length ? sites.map((site) => el("section", { class: "card" },
      el("h2", {}, site.name, " ", el("span", { class: "state s-" + (site.state === "ok" ? "ok" : "trouble") }, site.state === "ok" ? "works" : "waits until " + clock(site.until))),
      site.message && el("p", {}, site.message), site.waits_for && el("p", {}, "No answer for: " + site.waits_for), site.files && site.files.message && el("p", {}, "Files: " + site.files.message), site.files && site.files.copy && el("p", {}, site.files.copy.text), (site.nodes || []).map((node) => el("p", {}, "Node " + node.name + " is " + node.state + ": " + (node.message || ""))),
      el("p", { class: "quiet" }, site.scheduler + ", " + site.transport + "; batch jobs: " + site.queued + " in queues (at most " + site.max_queued + "), " + site.running + " running (at most " + site.max_running + " in all)"),
      table("Shapes", [{ name: "Shape", of: (s) => s.name }, { name: "Partition", narrow: true, of: (s) => s.partition || "" }, { name: "Cpus", number: true, of: (s) => s.cpus }, { name: "Memory", number: true, of: (s) => size(s.memory) }, { name: "GPUs", narrow: true, of: (s) => Object.entries(s.gpus || {}).map(([kind, n]) => n + " " + kind).join(", ") }, { name: "Walltime", number: true, narrow: true, of: (s) => s.walltime ? span(s.walltime) : "none" }, { name: "In queues", number: true, of: (s) => s.queued }, { name: "Running", number: true, of: (s) => s.running }], site.shapes || [], "It has no shapes: hpcbatch sites check " + site.name),
      el("div", { class: "actions" }, known.may_change && site.state !== "ok" && el("button", { type: "button", on: { click: () => resume(site.name) } }, "Resume")), command("hpcbatch", "sites", "check", site.name))) : el("p", { class: "empty" }, known.engine ? "No site is configured." : "Loading …"));
    told = text;
    fill(jobs, table("Batch jobs that hold pilots", [{ name: "Name", of: (a) => a.name }, { name: "Batch job", of: (a) => a.batch_id || "–" }, { name: "Shape", of: (a) => a.site + "/" + a.shape }, { name: "State", of: (a) => a.state }, { name: "Submitted", narrow: true, of: (a) => clock(a.submitted_at) }, { name: "Started", narrow: true, of: (a) => clock(a.started_at) }, { name: "Message", of: (a) => a.message || "" }], [...known.sections.allocations.values()], "There is no batch job."));
  } };
};

views.dropboxes = (main) => {
  const body = el("div", {}), services = el("div", {});
  fill(main, el("h1", {}, "Drop boxes"), el("section", { class: "card" }, body, command("hpcbatch", "dropbox")), el("section", { class: "card" }, el("h2", {}, "Work that came through them"), services));
  return { update() {
    fill(body, table("Folders that are watched", [{ name: "Folder", of: (d) => d.directory }, { name: "State", of: (d) => d.watched ? state("ok") : state("trouble") }, { name: "Message", of: (d) => d.message || "" }, { name: "Results below", narrow: true, of: (d) => (d.allow || []).join(", ") }], [...known.sections.dropboxes.values()], "No drop box is watched: hpcbatch dropbox DIR"));
    fill(services, submission_table([...known.sections.arrays.values()].filter((a) => (a.client || "").startsWith("dropbox")).sort((a, b) => parseInt(b.id, 10) - parseInt(a.id, 10)).slice(0, 50), "Nothing came through a drop box lately."));
  } };
};

views.nothing = (main) => { fill(main, el("h1", {}, "There is no such view"), el("p", {}, el("a", { href: "#/" }, "Overview"))); return {}; };
