// The explorable run: a space-time diagram with a cut that one drags, and that says whether it is consistent.
//
// It takes what `model.render.explorable.data_of` gives: the journal of a run, in columns. What it draws is laid out by
// the rules of `model.render.spacetime`; what it says of a cut is the equation of `model.spec.invariants`:
//
//     sent before the cut of the sender  ==  taken before the cut of the receiver  +  recorded as in flight
//
// Tests hold both against the Python. No library, no build step, no network: a notebook (anywidget), a report and a page
// of its own take this file as it is.

const EVENT = "event", BARRIER = "barrier";
const ALSO_SHOWN = new Set(["send", "take", "deliver", "block", "end", "restored_in_flight", ">restore"]);
const FAULTS = new Set(["orphan", "lost", "twice", "early", "order"]);
const MOST_DRAWN = 1500, MOST_LABELLED = 140, MOST_LISTED = 4;

// ---------------------------------------------------------------------------------------------------- the journal

/** The data themselves, of data that may be packed: deflated, and in base64. */
export async function unpack(data) {
  if (!data.packed) return data;
  const bytes = Uint8Array.from(atob(data.packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** The entries of a journal that is in columns. */
export function entriesOf(data) {
  const { at, verb, node, channel, subject } = data.entries;
  let now = 0;
  return verb.map((v, i) => ({
    at: (now += at[i]), verb: data.verbs[v], node: data.nodes[node[i]],
    channel: channel[i] < 0 ? null : channel[i], subject: subject[i] < 0 ? null : subject[i],
  }));
}

/** The line of an entry, as a trace has it. */
export function lineOf(data, entry) {
  const where = entry.channel !== null ? data.channels[entry.channel].name : "";
  const what = entry.subject !== null ? data.subjects[entry.subject].text : "";
  if (entry.verb[0] !== ">") return [entry.node, entry.verb, where, what].filter(Boolean).join(" ");
  const who = where || (entry.node === data.coordinator && !["crash", "expire"].includes(entry.verb.slice(1)) ? "" : entry.node);
  return [entry.verb.slice(1), who, what].filter(Boolean).join(" ");
}

/** A journal in space and time: messages, marks, attempts and cuts, placed by the number of the step. */
export function layOut(data, entries = entriesOf(data)) {
  const run = { data, entries, at: [], messages: [], marks: [], restores: [], moves: [], entryOfStep: [], stepOfEntry: [],
    checkpoints: new Map(), attempts: [] };
  let onWay = new Map(), buffered = new Map(), latest = new Map(), awaited = new Map(), emits = new Map();
  let cause = new Map();  // by task, the step of what it did last that may make it send
  const of = (map, key) => map.get(key) ?? map.set(key, []).get(key);
  const barrierOf = (s) => (data.subjects[s]?.kind === BARRIER ? data.subjects[s].id : null);
  const same = (one, other) => one === other || (barrierOf(one) !== null && barrierOf(one) === barrierOf(other));
  const checkpoint = (id) => run.checkpoints.get(id) ??
    run.checkpoints.set(id, { id, attempt: run.attempts.length - 1, cut: new Map(), recorded: new Map(), status: "open", ended: null }).get(id);
  const begin = (step) => { run.attempts.push({ first: step, least: step, last: step }); cause = new Map(); emits = new Map(); latest = new Map(); awaited = new Map(); };
  const add = (channel, subject, sent, restored = false) => {
    const { from, to } = data.channels[channel];
    const message = { index: run.messages.length, channel, sender: from, receiver: to, subject, kind: data.subjects[subject].kind,
      sent, caused: sent, taken: null, applied: null, gone: null, ignored: false, restored, recordedBy: [], attempt: run.attempts.length - 1 };
    run.messages.push(message);
    return message;
  };
  const record = (message, { id, bySender }) => { message.recordedBy.push(id); of(checkpoint(id).recorded, message.channel).push({ message, bySender }); };
  begin(0);
  for (const [index, entry] of entries.entries()) {
    const { verb, node, channel, subject } = entry;
    const template = data.marks[verb], about = subject === null ? null : data.subjects[subject];
    if (template !== undefined || ALSO_SHOWN.has(verb) || !run.at.length) { run.at.push(entry.at); run.entryOfStep.push(index); }
    const step = run.at.length - 1;
    run.stepOfEntry.push(step);
    const brought = !data.timed && run.moves.length && entries[run.moves.at(-1).entry].at === entry.at;  // by the move before
    if (verb[0] === ">" && index >= (data.earlier ?? 0) && !brought) run.moves.push({ step, entry: index });
    if (verb === ">restore") {
      for (const messages of [...onWay.values(), ...buffered.values()]) for (const message of messages) message.gone = step;
      onWay = new Map(); buffered = new Map();
      run.restores.push(step);
      begin(step);
    }
    const attempt = run.attempts.at(-1);
    attempt.last = step;
    if (verb === ">restore" || verb === "restored" || verb === "restored_in_flight") attempt.least = step;
    if (index < (data.earlier ?? 0)) attempt.least = step;
    if (template !== undefined) {
      const what = about === null ? "" : about.head ?? about.text;
      run.marks.push({ node, step, verb, text: template.replace("{}", what).trim() });
      if (verb === ">emit") { emits.set(`${node} ${subject}`, step); cause.set(node, step); }
      if (verb === "snapshot" && !checkpoint(about.id).cut.has(node)) {
        const its = checkpoint(about.id);
        its.cut.set(node, step); its.attempt = run.attempts.length - 1;
      }
      if (verb === "completed" || verb === "aborted") Object.assign(checkpoint(about.id), { status: verb, ended: step });
      if (verb === ">trigger") checkpoint(about.id).attempt = run.attempts.length - 1;
    }
    if (channel === null) continue;
    if (verb === "send" || verb === "restored_in_flight") {
      const message = add(channel, subject, step, verb === "restored_in_flight");
      if (verb === "send") message.caused = emits.get(`${node} ${subject}`) ?? cause.get(node) ?? step;
      of(onWay, channel).push(message);
      const key = `${channel} ${subject}`;
      latest.set(key, message);
      for (const its of awaited.get(key) ?? []) record(message, its);
      awaited.delete(key);
    } else if (verb === "take") {
      const way = of(onWay, channel), place = way.findIndex((m) => same(m.subject, subject));
      const message = place < 0 ? add(channel, subject, null) : way.splice(place, 1)[0];
      message.taken = step;
      of(buffered, channel).push(message);
    } else if (verb === "capture") {
      const key = `${channel} ${about.inner}`, its = { id: about.id, bySender: node === data.channels[channel].from };
      if (latest.has(key)) record(latest.get(key), its);
      else of(awaited, key).push(its);  // it is in the outbox of its sender
    } else if (verb === "deliver" || verb === "end" || verb === "block" || verb === "ignore") {
      const held = of(buffered, channel);
      const place = held.findIndex((m) => m.subject === subject || (verb === "block" && barrierOf(m.subject) === about.id));
      if (place >= 0) Object.assign(held.splice(place, 1)[0], { applied: step, ignored: verb === "ignore" });
      if (verb === "deliver" || verb === "end") cause.set(node, step);
    }
  }
  for (const { recorded } of run.checkpoints.values()) for (const [channel, its] of recorded) {
    const ofSender = its.filter((each) => each.bySender).sort((one, other) => one.message.sent - other.message.sent);
    recorded.set(channel, [...its.filter((each) => !each.bySender), ...ofSender].map((each) => each.message));
  }
  if (data.later && entries.length > data.later) run.attempts.at(-1).last = run.stepOfEntry[entries.length - data.later] - 1;
  for (const attempt of run.attempts) attempt.last = Math.max(attempt.last, attempt.least);
  run.attempts.forEach((each, i) => { if (i + 1 < run.attempts.length) each.last = run.attempts[i + 1].first - 1; });
  run.byAttempt = run.attempts.map((_, i) => run.messages.filter((m) => m.attempt === i && m.kind === EVENT));
  run.own = new Map(data.nodes.map((node) => [node, []]));  // by task, the steps of what a cut may pass
  for (const mark of run.marks) run.own.get(mark.node)?.push(mark.step);
  for (const message of run.messages) if (message.applied !== null) run.own.get(message.receiver)?.push(message.applied);
  for (const [node, steps] of run.own) run.own.set(node, [...new Set(steps)].sort((a, b) => a - b));
  return run;
}

// -------------------------------------------------------------------------------------------------------- the cut

/**
 * The side of each event to a cut, and what is wrong with it.
 *
 * `cut` has the step of each task: what happened up to it is ahead of the cut. `recorded` has by channel what was
 * recorded as in flight; without it, all that is in flight is taken as recorded, as a checkpoint there would do.
 */
export function judge(run, attempt, cut, recorded = null) {
  const fates = new Map(), faults = [], inFlight = [];
  const isRecorded = recorded && new Set([...recorded.values()].flat());
  const sides = new Map();
  const side = (channel) => sides.get(channel) ?? sides.set(channel, { left: [], right: [], kept: [] }).get(channel);
  for (const message of run.byAttempt[attempt] ?? []) {
    const before = message.sent !== null && message.caused <= cut.get(message.sender);
    const taken = message.applied !== null && !message.ignored && message.applied <= cut.get(message.receiver);
    const kept = isRecorded ? isRecorded.has(message) : before && !taken;
    const fate = before ? (taken ? (kept ? "twice" : "ahead") : kept ? "in-flight" : "lost")
      : taken ? "orphan" : kept ? "early" : "behind";
    fates.set(message, fate);
    if (FAULTS.has(fate)) faults.push({ kind: fate, message });
    if (fate === "in-flight") inFlight.push(message);
    const its = side(message.channel);
    if (before) its.left.push(message);
    if (taken) its.right.push(message);
    if (kept) its.kept.push(message);
  }
  if (!faults.length) for (const [channel, { left, right, kept }] of sides) {
    right.sort((one, other) => one.applied - other.applied);
    if (recorded) kept.sort((one, other) => recorded.get(channel).indexOf(one) - recorded.get(channel).indexOf(other));
    const taken = [...right, ...kept], place = left.findIndex((message, i) => message.subject !== taken[i].subject);
    if (place >= 0) { faults.push({ kind: "order", message: left[place] }); fates.set(left[place], "order"); }
  }
  return { fates, faults, inFlight };
}

const WORDS = {
  ahead: "ahead of the cut", behind: "behind the cut", "in-flight": "in flight, recorded",
  orphan: "an orphan: taken ahead of the cut, sent behind it",
  lost: "lost: sent ahead of the cut, taken behind it, and not recorded",
  twice: "counted twice: taken ahead of the cut, and recorded as in flight",
  early: "an orphan: sent behind the cut, and recorded as in flight", order: "out of order at the cut",
};

/** The verdict in words, the same for an eye and for a screen reader. */
export function wordsOf(run, verdict, recorded, permitsOrphans) {
  const name = (message) => `${run.data.subjects[message.subject].text} on ${run.data.channels[message.channel].name}`;
  const list = (messages) => messages.slice(0, MOST_LISTED).map(name).join(", ") + (messages.length > MOST_LISTED ? ` and ${messages.length - MOST_LISTED} more` : "");
  const faults = permitsOrphans ? verdict.faults.filter((each) => each.kind === "lost") : verdict.faults;
  const orphans = verdict.faults.length - faults.length;
  if (faults.length) {
    const first = faults[0], others = faults.length > 1 ? `; and ${faults.length - 1} more: ${list(faults.slice(1).map((f) => f.message))}` : "";
    return { good: false, head: "not consistent", text: `${name(first.message)} is ${WORDS[first.kind]}${others}` };
  }
  const flying = verdict.inFlight.length ? `in flight: ${list(verdict.inFlight)}` : "nothing is in flight";
  const kept = !verdict.inFlight.length ? "" : recorded ? ", and recorded" : ", which a checkpoint here has to record";
  const repeats = orphans ? `; ${orphans} orphans, which the protocol, at least once, permits` : "";
  return { good: true, head: orphans ? "consistent at least once" : "consistent", text: `${flying}${kept}${repeats}` };
}

/** What became of a message, in words. */
export function lifeOf(run, message, fate) {
  const { data, at } = run;
  const when = (step) => (data.timed ? `at ${time(at[step])}` : `in step ${step + 1}`);
  const lines = [];
  if (message.sent === null) lines.push("nobody sent it");
  else if (message.restored) lines.push(`restored in its channel ${when(message.sent)}`);
  else {
    if (message.caused < message.sent && message.kind === EVENT) lines.push(`caused at ${message.sender} ${when(message.caused)}`);
    lines.push(`sent by ${message.sender} ${when(message.sent)}`);
  }
  if (message.taken !== null) lines.push(`taken by ${message.receiver} ${when(message.taken)}`);
  if (message.ignored) lines.push(`ignored ${when(message.applied)}`);
  else if (message.applied !== null) {
    if (message.applied - message.taken > 1)
      lines.push(`buffered for ${data.timed ? time(at[message.applied] - at[message.taken]) : `${message.applied - message.taken} steps`}`);
    lines.push(`took effect ${when(message.applied)}`);
  } else if (message.gone !== null) lines.push(`gone with the crash, ${when(message.gone)}`);
  else lines.push(message.taken === null ? "still on its way" : "still buffered");
  for (const id of message.recordedBy) lines.push(`recorded as in flight by checkpoint ${id}`);
  if (fate) lines.push(WORDS[fate]);
  return lines;
}

function time(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toFixed(3)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toFixed(3)} ms`;
  return size >= 1e3 ? `${(ns / 1e3).toFixed(1)} µs` : `${ns} ns`;
}

// ------------------------------------------------------------------------------------------- the states of a scope

/** The states that were kept of a scope, and the moves between them. */
export class Graph {
  constructor(data, graph) {
    this.data = data;
    this.graph = graph;
    let place = 0;
    this.first = graph.degrees.map((degree) => (place += degree) - degree);
    this.wrong = new Map(graph.wrong);
  }

  /** The moves of a state: its text, what it does, where it leads; `to` is null where no state was kept. */
  moves(state) {
    if (state === null) return null;
    const { degrees, moves, notes, targets } = this.graph;
    return Array.from({ length: degrees[state] }, (_, i) => {
      const edge = this.first[state] + i;
      const to = targets[edge] === null ? null : state + targets[edge];
      return { text: moves[this.graph.move[edge]], notes: notes[this.graph.note[edge]], to, wrong: this.wrong.get(to) };
    });
  }

  /** The entries of a move that is the `number`th of a run. */
  entries(move, number) {
    return move.notes.map(([verb, node, channel, subject]) => ({
      at: number, verb: this.data.verbs[verb], node: this.data.nodes[node],
      channel: channel < 0 ? null : channel, subject: subject < 0 ? null : subject,
    }));
  }
}

// ---------------------------------------------------------------------------------------------------- the picture

const SVG = ["http", "//www.w3.org/2000/svg"].join(":");  // a name, not an address: whoever looks for addresses finds none
let mounted = 0;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Show a run in `element`. Gives what a page may do with it: `cutAt`, `stepTo`, `verdict`, `destroy`. */
export async function mount(element, packed, { oncut = () => {} } = {}) {
  const data = await unpack(packed);
  const view = new View(element, data, oncut);
  element.explorable = view;
  return view;
}

class View {
  constructor(element, data, oncut) {
    Object.assign(this, { element, data, oncut, id: `brl${++mounted}`, tasks: data.tasks });
    this.graph = data.graph ? new Graph(data, data.graph) : null;
    this.whole = entriesOf(data);
    this.path = this.graph ? data.graph.path.map(([state, choice]) => ({ state, choice })) : null;
    this.byTime = data.timed;
    this.build();
    this.load(this.whole);
    const wanted = this.run.checkpoints.has(data.checkpoint) ? data.checkpoint : [...this.run.checkpoints.keys()].filter((id) => this.run.checkpoints.get(id).cut.size).at(-1);
    this.choose(wanted === undefined ? "free" : String(wanted));
    this.fit(true);
    this.stepTo(this.run.moves.length - 1);
    this.watch = new ResizeObserver(() => this.redraw());
    this.watch.observe(element);
  }

  destroy() { clearTimeout(this.listing); this.watch.disconnect(); this.element.replaceChildren(); }

  load(entries) {
    this.run = layOut(this.data, entries);
    const last = this.run.attempts.at(-1);
    this.attempt = this.run.attempts.length - 1;
    this.cut = new Map(this.tasks.map((task) => [task, Math.max(last.least, Math.floor((last.least + last.last) / 2))]));
    const ids = [...this.run.checkpoints.values()].filter((each) => each.cut.size);
    this.recordedSelect.replaceChildren(
      make("option", { value: "free" }, "any cut: all that is in flight is recorded"),
      ...ids.map((each) => make("option", { value: each.id }, `checkpoint ${each.id} (${each.status}): what it recorded`)),
    );
  }

  // ---- parts

  build() {
    const button = (label, title, does) => make("button", { type: "button", title, "aria-label": title, onclick: does }, label);
    this.recordedSelect = make("select", { "aria-label": "The cut, and what is recorded as in flight", onchange: (e) => this.choose(e.target.value, true) });
    this.verdictLine = make("p", { class: "brl-verdict", role: "status", "aria-live": "polite", "aria-atomic": "true" });
    this.note = make("p", { class: "brl-note" });
    this.tip = make("div", { class: "brl-tip", hidden: true });
    this.svg = draw("svg", { class: "brl-svg", role: "group", tabindex: "0", "aria-label":
      `Space-time diagram of ${this.data.title}: a line for each of ${this.tasks.length} tasks, with a cut that can be moved. Arrow keys move it; the question mark lists the keys.` });
    // Two pictures, one on the other: while the cut moves, what is below it is not drawn again unless it changes.
    this.below = draw("svg", { class: "brl-below", "aria-hidden": "true" });
    this.layers = Object.fromEntries(["back", "held", "messages", "marks", "cuts", "front"].map((name) => [name, draw("g", { class: `brl-${name}` })]));
    this.below.append(this.layers.back, this.layers.held, this.layers.messages, this.layers.marks);
    this.svg.append(this.layers.cuts, this.layers.front);
    this.now = make("div", { class: "brl-now" });
    this.others = make("div", { class: "brl-others" });
    this.keys = make("details", { class: "brl-keys" }, make("summary", {}, "Keys"), make("ul", {}, ...KEYS.map(([key, words]) => make("li", {}, make("kbd", {}, key), ` ${words}`))));
    this.table = make("details", { class: "brl-table", ontoggle: () => this.list() }, make("summary", {}, "Messages as a table"), make("div", {}));
    const axis = this.data.timed
      ? make("select", { "aria-label": "What the axis is", onchange: (e) => { this.byTime = e.target.value === "time"; this.fit(true); } }, make("option", { value: "time" }, "axis: time"), make("option", { value: "order" }, "axis: order"))
      : make("span", { class: "brl-dim" }, "from left to right: order, not time");
    const bar = make("div", { class: "brl-bar", role: "toolbar", "aria-label": "The run" },
      button("|◀", "To the first move", () => this.stepTo(0)), button("◀", "One move back", () => this.stepBy(-1)),
      button("▶", "One move on", () => this.stepBy(1)), button("▶|", "To the last move", () => this.stepTo(this.run.moves.length - 1)),
      button("+", "Zoom in", () => this.zoom(0.6)), button("−", "Zoom out", () => this.zoom(1 / 0.6)),
      button("⤢", "The whole run", () => this.fit(false)), axis, this.recordedSelect);
    const figure = make("div", { class: "brl-figure" }, this.below, this.svg, this.tip);
    this.element.classList.add("brl");
    this.element.replaceChildren(bar, this.verdictLine, figure, this.note, this.now, this.others, legend(this.data), this.table, this.keys);
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.svg.addEventListener("pointerdown", (e) => this.down(e));
    this.svg.addEventListener("pointermove", (e) => this.hover(e));
    this.svg.addEventListener("pointerleave", () => this.tell(null));
    this.handles = new Map();
  }

  // ---- the axis

  value(step) { return this.byTime ? this.run.at[step] : step; }
  x(value) { return this.left + ((value - this.from) / (this.to - this.from)) * (this.width - this.left - 16); }
  px(step) { return this.x(this.value(step)); }
  valueAt(x) { return this.from + ((x - this.left) / (this.width - this.left - 16)) * (this.to - this.from); }

  /** The last step at or before a value of the axis. */
  stepAt(value) {
    if (!this.byTime) return Math.floor(value);
    let low = 0, high = this.run.at.length;
    while (low < high) { const middle = (low + high) >> 1; if (this.run.at[middle] <= value) low = middle + 1; else high = middle; }
    return low - 1;
  }

  /** Where a cut at a step is drawn: behind it. */
  cutX(step) {
    if (!this.byTime) return this.x(step + 0.5);
    return this.px(step);
  }

  fit(around) {
    const last = this.run.attempts.at(-1).last;
    let first = this.data.earlier ? this.run.stepOfEntry[this.data.earlier] : 0, end = last;
    const its = this.run.checkpoints.get(Number(this.chosen));
    if (around && its && its.cut.size && last > 160) {
      const own = [...its.cut.values(), ...this.run.marks.filter((m) => m.verb === ">trigger" && m.text === `trigger ${its.id}`).map((m) => m.step)];
      first = Math.max(first, Math.min(...own) - 30); end = Math.min(last, (its.ended ?? Math.max(...own)) + 30);
    }
    this.from = this.value(Math.max(0, first)); this.to = this.value(end);
    const margin = Math.max((this.to - this.from) * 0.03, this.byTime ? 1 : 0.8);
    this.from -= margin; this.to += margin;
    this.redraw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    const least = this.byTime ? 10 : 4;
    if ((this.to - this.from) * factor < least) return;
    this.from = at - (at - this.from) * factor; this.to = at + (this.to - at) * factor;
    this.redraw();
  }

  pan(share) { const by = (this.to - this.from) * share; this.from += by; this.to += by; this.redraw(); }

  // ---- drawing

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.drawAll(); });
  }

  drawAll() {
    const { run, data, layers } = this;
    this.width = Math.max(280, this.element.clientWidth || 800);
    this.left = Math.min(120, Math.max(52, 10 + 7 * Math.max(...data.nodes.map((n) => n.length)), 0), this.width * 0.25);
    const rows = [...this.tasks, data.coordinator], gap = rows.length > 12 ? 30 : rows.length > 7 ? 42 : 58;
    this.rows = new Map(rows.map((node, i) => [node, 46 + gap * i]));
    this.height = 46 + gap * rows.length - gap / 2 + 8;
    for (const svg of [this.below, this.svg]) {
      for (const [key, value] of [["viewBox", `0 0 ${this.width} ${this.height}`], ["width", this.width], ["height", this.height]]) svg.setAttribute(key, value);
    }
    const right = this.width - 8;
    const back = [];
    for (const tick of this.ticks()) {
      back.push(draw("line", { class: "brl-tick", x1: tick.x, x2: tick.x, y1: 22, y2: this.height - 6 }), draw("text", { class: "brl-dim", x: tick.x, y: 14, "text-anchor": "middle" }, tick.text));
    }
    for (const [node, y] of this.rows) {
      back.push(draw("line", { class: node === data.coordinator ? "brl-life brl-coordinator" : "brl-life", x1: this.left, x2: right, y1: y, y2: y }));
      const label = draw("text", { class: "brl-name", x: this.left - 8, y: y + 4, "text-anchor": "end" }, clipped(node, (this.left - 10) / 7));
      label.append(draw("title", {}, node));
      back.push(label);
    }
    for (const step of run.restores) {
      const x = this.px(step);
      if (x < this.left || x > right) continue;
      back.push(draw("line", { class: "brl-restore", x1: x, x2: x, y1: 24, y2: this.height - 6 }), draw("text", { class: "brl-good", x: x + 4, y: 32 }, "restored"));
    }
    layers.back.replaceChildren(...back);
    this.drawMessages(right);
    this.drawCuts();
    this.drawPlace();
  }

  *ticks() {
    const span = this.to - this.from, count = Math.max(2, Math.floor((this.width - this.left) / 110));
    let unit = 10 ** Math.floor(Math.log10(span / count));
    unit *= span / count / unit > 5 ? 10 : span / count / unit > 2 ? 5 : span / count / unit > 1 ? 2 : 1;
    if (!this.byTime) unit = Math.max(1, Math.round(unit));
    for (let value = Math.ceil(this.from / unit) * unit; value <= this.to; value += unit) {
      if (value < 0) continue;
      yield { x: this.x(value), text: this.byTime ? tickText(value, unit) : String(value + 1) };
    }
  }

  drawMessages(right) {
    const { run, layers } = this;
    const first = this.stepAt(this.from), last = this.stepAt(this.to), end = run.at.length - 1;
    let seen = run.messages.filter((m) => (m.sent ?? m.taken) <= last && (m.applied ?? m.gone ?? m.taken ?? end) >= first);
    const all = seen.length;
    if (all > MOST_DRAWN) seen = seen.filter((m) => m.kind === BARRIER || FAULTS.has(this.verdict.fates.get(m)) || this.verdict.fates.get(m) === "in-flight").slice(0, MOST_DRAWN);
    this.note.textContent = [all > seen.length ? `${seen.length} of ${all} messages are drawn: barriers, and what crosses the cut; zoom in for the others.` : "", this.data.note ?? ""].filter(Boolean).join(" ");
    const labelled = seen.length <= MOST_LABELLED * (this.width > 600 ? 1 : 0.4);
    const taken = new Set(), within = (x, letters) => Math.min(x, this.width - 7 * letters), isFree = (x, y, letters) => {
      const cells = Array.from({ length: Math.ceil((letters * 5.5) / 20) + 1 }, (_, i) => `${Math.round(x / 20) + i} ${Math.round(y / 11)}`);
      return cells.every((cell) => !taken.has(cell)) && cells.forEach((cell) => taken.add(cell)) === undefined;
    };
    const paths = [], held = [], clip = (x) => Math.min(Math.max(x, this.left - 4), right + 4);
    this.drawn = [];
    this.pathOf = new Map();
    for (const m of seen) {
      const subject = this.data.subjects[m.subject];
      const stop = m.taken ?? m.gone;
      let x1 = this.px(m.sent ?? Math.max(0, m.taken - 1)), x2 = stop === null ? Math.max(x1 + 14, this.x(this.to)) : this.px(stop);
      let y1 = this.rows.get(m.sender), y2 = this.rows.get(m.receiver);
      if (m.restored) y1 = y2 - 22;
      else if (m.taken === null) { y2 = y1 + (y2 - y1) * 0.8; if (stop === null) x2 = Math.min(x2, x1 + 40); }
      [x1, y1, x2, y2] = cropped(x1, y1, x2, y2, this.left, right);
      if (x1 === null) continue;
      const path = draw("path", { d: arrow(x1, y1, x2, y2), class: this.classOf(m) });
      paths.push(path);
      this.pathOf.set(m, path);
      this.drawn.push({ m, x1, y1, x2, y2 });
      if (labelled && Math.abs(x2 - x1) + Math.abs(y2 - y1) > 24) {
        const along = subject.kind === BARRIER ? 0.62 : 0.34, y = y1 + (y2 - y1) * along - 3;
        const text = subject.kind === BARRIER ? `B${subject.id}` : subject.text.replace("watermark", "W");
        const x = within(x1 + (x2 - x1) * along + 4, text.length);
        if (isFree(x, y, text.length)) paths.push(draw("text", { class: "brl-label", x, y }, text));
      }
      if (m.recordedBy.length && m.taken !== null) paths.push(draw("circle", { class: "brl-ring", cx: x2, cy: y2, r: 5.5 }));
      if (m.taken !== null && m.kind !== BARRIER && m.applied !== m.taken) {
        const until = m.applied ?? m.gone ?? end;
        if (until - m.taken > 1 && clip(this.px(until)) - clip(this.px(m.taken)) > 0.5)
          held.push(draw("line", { x1: clip(this.px(m.taken)), x2: clip(this.px(until)), y1: this.rows.get(m.receiver), y2: this.rows.get(m.receiver) }));
      }
    }
    layers.held.replaceChildren(...held);
    layers.messages.replaceChildren(...paths);
    const marks = [];
    this.drawnMarks = [];
    for (const mark of run.marks) {
      if (mark.step < first || mark.step > last) continue;
      const x = this.px(mark.step), y = this.rows.get(mark.node);
      if (y === undefined || x < this.left - 2 || x > right + 2) continue;
      if (all > MOST_DRAWN && mark.verb === ">emit") continue;
      let sign;
      if (mark.verb === "snapshot") sign = draw("rect", { class: "brl-snapshot", x: x - 3, y: y - 9, width: 6, height: 18, rx: 2 });
      else if (mark.verb === ">crash") sign = draw("path", { class: "brl-crash", d: `M${x - 7} ${y - 7}l14 14m0-14l-14 14` });
      else if (mark.verb === ">emit") sign = draw("circle", { class: this.emitOf(mark), cx: x, cy: y, r: 3 });
      else sign = draw("circle", { class: "brl-mark", cx: x, cy: y, r: 3 });
      marks.push(sign);
      this.drawnMarks.push({ mark, x, y, sign });
      const begins = within(x - 3, mark.text.length);
      if (mark.node === this.data.coordinator && isFree(begins, y + 15, mark.text.length)) marks.push(draw("text", { class: "brl-label brl-dim", x: begins, y: y + 15 }, mark.text));
    }
    layers.marks.replaceChildren(...marks);
  }

  emitOf(mark) { return mark.step > this.cut.get(mark.node) ? "brl-emit brl-behind" : "brl-emit"; }

  classOf(m) {
    const classes = [m.kind === EVENT ? `f-${this.verdict.fates.get(m) ?? "other"}` : m.kind === BARRIER ? "f-barrier" : "f-control"];
    if (m.taken === null || m.restored) classes.push("brl-open");
    if ((m.sent ?? m.taken) > this.playStep) classes.push("brl-later");
    return classes.join(" ");
  }

  drawCuts() {
    const children = [], top = this.rows.get(this.tasks[0]), bottom = this.rows.get(this.tasks.at(-1));
    const line = (cut) => {
      const places = this.tasks.filter((t) => cut.has(t)).map((t) => [this.cutX(cut.get(t)), this.rows.get(t)]);
      return places.length ? [[places[0][0], top - 16], ...places, [places.at(-1)[0], bottom + 14]] : [];
    };
    for (const its of this.run.checkpoints.values()) {
      const points = line(its.cut);
      if (!points.length || points.every(([x]) => x < this.left || x > this.width)) continue;
      children.push(draw("polyline", { class: `brl-layer${String(its.id) === this.chosen ? " brl-chosen" : ""}`, points: points.join(" ") }));
      const label = draw("text", { class: `brl-layer-name brl-${its.status}`, x: points[0][0], y: top - 19, "text-anchor": "middle" }, `c${its.id}`);
      label.append(draw("title", {}, `checkpoint ${its.id}: ${its.status}`));
      label.addEventListener("pointerdown", (e) => { e.stopPropagation(); this.choose(String(its.id), true); });
      children.push(label);
    }
    this.line = draw("polyline", { class: "brl-cut" });
    this.grip = draw("polyline", { class: "brl-grip", "aria-hidden": "true" });
    this.grip.append(draw("title", {}, "drag: the whole cut"));
    this.grip.addEventListener("pointerdown", (e) => this.drag(e, null));
    this.layers.cuts.replaceChildren(...children, this.line, this.grip);
    if (this.handles.size !== this.tasks.length) {
      for (const task of this.tasks) {
        const handle = draw("circle", { class: "brl-handle", r: 7, role: "slider", tabindex: this.handles.size ? "-1" : "0", "aria-orientation": "horizontal", "aria-label": `The cut at ${task}` });
        handle.addEventListener("pointerdown", (e) => this.drag(e, task));
        handle.addEventListener("focus", () => { this.active = task; this.placeCut(); });
        this.handles.set(task, handle);
      }
      this.layers.front.replaceChildren(...this.handles.values());
    }
    this.placeCut();
  }

  placeCut() {
    if (!this.rows || !this.line) return;
    const range = this.run.attempts[this.attempt];
    const points = [];
    for (const task of this.tasks) {
      const step = this.cut.get(task), x = Math.min(Math.max(this.cutX(step), this.left - 6), this.width - 4), y = this.rows.get(task), handle = this.handles.get(task);
      points.push([x, y]);
      handle.setAttribute("cx", x); handle.setAttribute("cy", y);
      handle.setAttribute("aria-valuemin", range.least); handle.setAttribute("aria-valuemax", range.last); handle.setAttribute("aria-valuenow", step);
      handle.setAttribute("aria-valuetext", this.placeWords(task, step));
      handle.setAttribute("tabindex", task === (this.active ?? this.tasks[0]) ? "0" : "-1");
    }
    const text = [[points[0][0], points[0][1] - 14], ...points, [points.at(-1)[0], points.at(-1)[1] + 12]].join(" ");
    this.line.setAttribute("points", text); this.grip.setAttribute("points", text);
    this.line.setAttribute("class", `brl-cut ${this.words.good ? "brl-holds" : "brl-fails"}`);
  }

  placeWords(task, step) {
    const own = this.run.own.get(task).filter((each) => each <= step);
    if (!own.length || own.at(-1) < this.run.attempts[this.attempt].first) return "ahead of all that it does";
    return `behind ${lineOf(this.data, this.run.entries[this.run.entryOfStep[own.at(-1)]])}, ${own.length} of ${this.run.own.get(task).length}`;
  }

  // ---- the cut

  choose(value, goThere = false) {
    this.chosen = value;
    this.recordedSelect.value = value;
    const its = this.run.checkpoints.get(Number(value));
    if (its) {
      this.attempt = its.attempt;
      const range = this.run.attempts[its.attempt];
      // A task without a snapshot had finished, or has not come to it: all that it did is ahead of the cut.
      this.cut = new Map(this.tasks.map((task) => [task, its.cut.get(task) ?? range.last]));
    }
    this.judged();
    if (goThere && its) {
      const places = [...its.cut.values()].map((step) => this.value(step));
      if (Math.min(...places) < this.from || Math.max(...places) > this.to) this.fit(true);
    }
    if (this.rows) this.redraw();
  }

  get recorded() { return this.run.checkpoints.get(Number(this.chosen))?.recorded ?? null; }

  /** Put the cut: a step for each task that is named. */
  cutAt(steps) {
    const range = this.run.attempts[this.attempt];
    for (const [task, step] of Object.entries(steps)) this.cut.set(task, Math.min(Math.max(step, range.least), range.last));
    this.judged();
    this.placeCut();
  }

  judged() {
    const before = this.verdict;
    const recorded = this.recorded && this.run.checkpoints.get(Number(this.chosen)).attempt === this.attempt ? this.recorded : null;
    this.verdict = judge(this.run, this.attempt, this.cut, recorded);
    this.words = wordsOf(this.run, this.verdict, recorded, this.data.permits_orphans);
    const its = this.run.checkpoints.get(Number(this.chosen)), without = its ? this.tasks.filter((task) => !its.cut.has(task)) : [];
    if (without.length) this.words.text += `; ${without.slice(0, MOST_LISTED).join(", ")} took no snapshot of it, and ${without.length > 1 ? "are" : "is"} cut elsewhere`;
    const mark = make("strong", { class: this.words.good ? "brl-good" : "brl-bad" }, `${this.words.good ? "✓" : "✗"} ${this.words.head}`);
    this.verdictLine.replaceChildren(mark, `: ${this.words.text}`);
    if (before && this.pathOf) for (const [message, path] of this.pathOf)
      if (before.fates.get(message) !== this.verdict.fates.get(message)) path.setAttribute("class", this.classOf(message));
    if (before && this.pathOf) for (const { mark, sign } of this.drawnMarks)
      if (mark.verb === ">emit") sign.setAttribute("class", this.emitOf(mark));
    if (this.table.open) { clearTimeout(this.listing); this.listing = setTimeout(() => this.list(), 300); }
    this.oncut(Object.fromEntries(this.cut), this.words);
  }

  drag(event, task) {
    if (event.button) return;
    event.preventDefault(); event.stopPropagation();
    const began = this.pointer(event).x, from = new Map(this.cut);
    if (task) { this.active = task; this.handles.get(task).focus?.({ preventScroll: true }); }
    this.capture(event);
    this.dragging = (e) => {
      const x = this.pointer(e).x, steps = {}, there = this.stepAt(this.valueAt(x));
      const attempt = this.run.attempts.findIndex((each) => there >= each.first && there <= each.last);
      if (!task && attempt >= 0 && attempt !== this.attempt) {  // a cut is of one attempt: it goes over as a whole
        this.attempt = attempt;
        for (const each of this.tasks) from.set(each, there);
        this.choose("free");
        this.cutAt(Object.fromEntries(from));
        return;
      }
      if (task) steps[task] = this.stepAt(this.valueAt(x));
      else for (const [each, step] of from) steps[each] = this.stepAt(this.valueAt(this.cutX(step) + x - began));
      this.cutAt(steps);
    };
    this.svg.addEventListener("pointerup", () => { this.dragging = null; }, { once: true });
    this.svg.addEventListener("pointercancel", () => { this.dragging = null; }, { once: true });
  }

  /** A pointer that leaves the picture while it drags goes on dragging. */
  capture(event) { try { this.svg.setPointerCapture(event.pointerId); } catch { /* it is no pointer of this machine: a script's */ } }

  pointer(event) { const box = this.svg.getBoundingClientRect(); return { x: ((event.clientX - box.left) / box.width) * this.width, y: ((event.clientY - box.top) / box.height) * this.height }; }

  down(event) {
    if (event.button || event.target.closest?.(".brl-handle, .brl-grip, .brl-layer-name")) return;
    const began = event.clientX, { from, to } = this;
    const tap = (e) => { if (Math.abs(e.clientX - began) < 5) { this.dragging = null; this.hover(e); } };  // a finger cannot hover
    this.svg.addEventListener("pointerup", tap, { once: true });
    if (event.pointerType !== "touch") event.preventDefault();
    this.svg.focus({ preventScroll: true });
    this.capture(event);
    this.dragging = (e) => {
      const by = ((began - e.clientX) / (this.width - this.left)) * (to - from);
      this.from = from + by; this.to = to + by;
      this.redraw();
    };
    this.svg.addEventListener("pointerup", () => { this.dragging = null; }, { once: true });
    this.svg.addEventListener("pointercancel", () => { this.dragging = null; }, { once: true });
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY) && !event.shiftKey) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * 0.004), this.valueAt(this.pointer(event).x));
    else this.pan((event.shiftKey ? event.deltaY || event.deltaX : event.deltaX) / this.width);
  }

  hover(event) {
    if (this.dragging) { this.dragging(event); return; }
    const { x, y } = this.pointer(event);
    let best = null, least = 7;
    for (const each of this.drawn ?? []) { const d = distance(x, y, each); if (d < least) { least = d; best = each.m; } }
    const mark = (this.drawnMarks ?? []).filter((each) => Math.hypot(x - each.x, y - each.y) < 6).at(-1)?.mark;
    if (mark) this.tellMark(mark, x, y);
    else this.tell(best, x, y);
  }

  tellMark(mark, x, y) {
    this.tell(null);
    const entry = this.run.entries[this.run.entryOfStep[mark.step]];
    this.showTip(x, y, `${mark.node}: ${mark.text}`, [lineOf(this.data, entry), this.data.timed ? `at ${time(entry.at)}` : `in step ${mark.step + 1}`]);
  }

  showTip(x, y, head, lines) {
    this.tip.hidden = false;
    this.tip.replaceChildren(make("strong", {}, head), make("ul", {}, ...lines.map((line) => make("li", {}, line))));
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.width - 250))}px`;
    this.tip.style.top = `${y + 16}px`;
  }

  tell(message, x = 0, y = 0) {
    if (this.followed && this.followed !== message) this.pathOf.get(this.followed)?.classList.remove("brl-followed");
    this.followed = message;
    this.tip.hidden = !message;
    if (!message) return;
    this.pathOf.get(message)?.classList.add("brl-followed");
    const name = `${this.data.subjects[message.subject].text} on ${this.data.channels[message.channel].name}`;
    this.showTip(x, y, name, lifeOf(this.run, message, this.verdict.fates.get(message)));
  }

  // ---- steps

  stepBy(by) { this.stepTo(this.play + by); }

  /** Go to a move of the run: what comes later is pale. */
  stepTo(number) {
    const { run } = this;
    this.play = Math.min(Math.max(number, 0), run.moves.length - 1);
    const next = run.moves[this.play + 1];
    this.playStep = next ? next.step - 1 : run.at.length - 1;
    if (next && run.moves[this.play]) this.playStep = Math.max(this.playStep, run.moves[this.play].step);
    if (this.rows) {
      const x = this.px(this.playStep);
      if (x < this.left || x > this.width) { const half = (this.to - this.from) / 2; this.from = this.value(this.playStep) - half; this.to = this.from + 2 * half; this.redraw(); }
      for (const [message, path] of this.pathOf) path.setAttribute("class", this.classOf(message));
      this.drawPlace();
    }
    this.showNow();
  }

  drawPlace() {
    this.place?.remove();
    const x = this.byTime ? this.px(this.playStep) : this.x(this.playStep + 0.25);
    this.place = draw("line", { class: "brl-place", x1: x, x2: x, y1: 20, y2: this.height - 4 });
    if (x >= this.left && x <= this.width) this.layers.marks.append(this.place);
  }

  showNow() {
    const { run, data } = this, move = run.moves[this.play];
    if (!move) { this.now.replaceChildren(); return; }
    const next = run.moves[this.play + 1]?.entry ?? run.entries.length;
    const effects = run.entries.slice(move.entry + 1, next).map((entry) => lineOf(data, entry));
    const at = data.timed ? ` at ${time(run.entries[move.entry].at)}` : "";
    const shown = effects.slice(0, 12), more = effects.length - shown.length;
    const inside = new Map();
    for (const m of run.messages) {
      if (m.sent === null || m.sent > this.playStep || (m.gone !== null && m.gone <= this.playStep)) continue;
      const text = data.subjects[m.subject].text, channel = data.channels[m.channel].name;
      if (m.taken === null || m.taken > this.playStep) inside.set(channel, [...(inside.get(channel) ?? []), text]);
      else if (m.applied === null || m.applied > this.playStep) inside.set(`buffered, of ${channel}`, [...(inside.get(`buffered, of ${channel}`) ?? []), text]);
    }
    const holds = [...inside].slice(0, 12).map(([where, texts]) => make("li", {}, make("b", {}, where), `: ${texts.slice(0, 8).join(", ")}${texts.length > 8 ? ` and ${texts.length - 8} more` : ""}`));
    this.now.replaceChildren(
      make("div", { class: "brl-move", "aria-live": "polite" }, make("b", {}, `Move ${this.play + 1} of ${run.moves.length}: ${lineOf(data, run.entries[move.entry])}${at}`),
        make("ul", { class: "brl-effects" }, ...shown.map((line) => make("li", {}, line)), ...(more > 0 ? [make("li", {}, `and ${more} more`)] : []))),
      make("div", { class: "brl-inside" }, make("b", {}, "On the way then"), make("ul", {}, ...(holds.length ? holds : [make("li", {}, "nothing")]))),
    );
    this.showOthers();
  }

  // ---- other moves, where the states of the scope are known

  showOthers() {
    if (!this.graph) return;
    const here = this.play < 0 ? this.path[0] : this.path[this.play + 1];
    const state = here?.state ?? null, taken = here?.choice ?? null;
    const wrong = this.graph.wrong.get(state);
    const parts = [make("b", {}, "Moves from here")];
    const reset = make("button", { type: "button", onclick: () => this.reset() }, "back to the run that was kept");
    if (this.departed) parts.push(" ", reset);
    if (wrong) parts.push(make("p", { class: "brl-bad" }, `✗ ${wrong}`));
    const moves = this.graph.moves(state);
    if (moves === null) parts.push(make("p", { class: "brl-dim" }, "This state is one of those whose moves are not in this page."));
    else if (!moves.length && !wrong) parts.push(make("p", { class: "brl-dim" }, "None: nothing more can happen."));
    if (moves) parts.push(make("div", { class: "brl-moves" }, ...moves.map((move, i) => make("button", { type: "button", "aria-current": i === taken ? "step" : null, class: move.wrong ? "brl-wrong" : null,
      title: move.wrong ?? (move.to === null ? "leads beyond what is kept in this page" : null), onclick: () => this.take(i) }, move.text + (move.wrong ? " ✗" : "") + (i === taken ? " ▸" : "")))));
    parts.push(make("p", { class: "brl-dim" }, `${this.graph.graph.degrees.length} states of the scope are in this page${this.graph.graph.all ? ", which is all of them" : ", those nearest to the run"}.`));
    this.others.replaceChildren(...parts);
  }

  /** Take another move where the run stands: what came later is not of this run any more. */
  take(choice) {
    const here = this.play + 1, at = this.path[here];
    if (at.choice === choice) { this.stepBy(1); return; }
    const move = this.graph.moves(at.state)[choice];
    const until = this.run.moves[this.play + 1]?.entry ?? this.run.entries.length;
    this.path = [...this.path.slice(0, here), { state: at.state, choice }, { state: move.to, choice: null }];
    this.departed = true;
    this.goOn([...this.run.entries.slice(0, until), ...this.graph.entries(move, here + 1)], here);
  }

  reset() {
    this.departed = false;
    this.path = this.data.graph.path.map(([state, choice]) => ({ state, choice }));
    this.goOn(this.whole, this.play);
  }

  goOn(entries, play) {
    const chosen = this.chosen;
    this.verdict = null; this.pathOf = null;
    this.load(entries);
    const known = this.run.checkpoints.get(Number(chosen))?.cut.size ? chosen : [...this.run.checkpoints.values()].filter((c) => c.cut.size).at(-1)?.id;
    this.choose(known === undefined ? "free" : String(known));
    const length = this.run.at.length;
    if (!this.byTime && (this.to < length || this.to > length * 2)) { this.from = Math.min(this.from, 0) || -1; this.to = length; }
    this.drawAll();
    this.stepTo(play);
  }

  // ---- for keyboards and screen readers

  key(event) {
    if (event.altKey || event.metaKey || (event.ctrlKey && !["ArrowLeft", "ArrowRight"].includes(event.key))) return;
    const task = this.active ?? this.tasks[0], place = this.tasks.indexOf(task), range = this.run.attempts[this.attempt];
    const next = (each, by) => {
      const step = this.cut.get(each), own = this.run.own.get(each).filter((s) => s >= range.least && s <= range.last);
      return by > 0 ? own.find((s) => s > step) ?? range.last : [range.least, ...own].filter((s) => s < step).at(-1) ?? range.least;
    };
    const move = (by) => {
      const its = event.shiftKey ? this.tasks : [task];
      this.cutAt(Object.fromEntries(its.map((each) => [each, next(each, by)])));
    };
    const focus = (by) => { this.active = this.tasks[(place + by + this.tasks.length) % this.tasks.length]; this.placeCut(); this.handles.get(this.active).focus(); };
    const layer = (by) => {
      const ids = [...this.run.checkpoints.values()].filter((c) => c.cut.size).map((c) => String(c.id)), at = ids.indexOf(this.chosen);
      if (ids.length) this.choose(ids[(at + by + ids.length) % ids.length], true);
    };
    const does = {
      ArrowLeft: () => move(-1), ArrowRight: () => move(1), ArrowUp: () => focus(-1), ArrowDown: () => focus(1),
      Home: () => this.cutAt({ [task]: range.least }), End: () => this.cutAt({ [task]: range.last }),
      PageUp: () => layer(-1), PageDown: () => layer(1), "+": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), 0: () => this.fit(false),
      "[": () => this.pan(-0.3), "]": () => this.pan(0.3), ",": () => this.stepBy(-1), ".": () => this.stepBy(1),
      m: () => this.tellNext(1), M: () => this.tellNext(-1), Escape: () => this.tell(null), "?": () => { this.keys.open = true; this.keys.firstChild.focus(); },
    }[event.key];
    if (!does) return;
    event.preventDefault(); event.stopPropagation();
    does();
  }

  /** The next message that is drawn: its life, said aloud. */
  tellNext(by) {
    const drawn = this.drawn ?? [];
    if (!drawn.length) return;
    const at = drawn.findIndex((each) => each.m === this.followed), each = drawn[(at + by + drawn.length) % drawn.length];
    this.tell(each.m, (each.x1 + each.x2) / 2, (each.y1 + each.y2) / 2);
    this.verdictLine.replaceChildren(this.tip.textContent ? `${this.tip.firstChild.textContent}: ${lifeOf(this.run, each.m, this.verdict.fates.get(each.m)).join("; ")}` : "");
  }

  list() {
    if (!this.table.open || !this.verdict) return;
    const { run, data } = this, rows = (this.drawn ?? []).slice(0, 500);
    const head = ["message", "channel", "sent", "taken", "took effect", "side of the cut"];
    const at = (step) => (step === null ? "–" : data.timed ? time(run.at[step]) : String(step + 1));
    this.table.lastChild.replaceChildren(make("table", {},
      make("caption", {}, `${rows.length} messages that are drawn; ${data.timed ? "times since the start" : "numbers of steps"}`),
      make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col" }, each)))),
      make("tbody", {}, ...rows.map(({ m }) => make("tr", {}, make("th", { scope: "row" }, data.subjects[m.subject].text),
        ...[data.channels[m.channel].name, at(m.sent), at(m.taken), at(m.applied), WORDS[this.verdict.fates.get(m)] ?? ""].map((each) => make("td", {}, each)))))));
  }
}

const KEYS = [
  ["← →", "move the cut at the task: one of its events back or on; with shift at all tasks"], ["↑ ↓", "go to the cut at another task"],
  ["Home End", "to where the task begins, or ends"], ["Page up, page down", "the cut of another checkpoint"], [", .", "one move of the run back or on"],
  ["+ − 0", "zoom in, out, the whole run; or the wheel with ctrl"], ["[ ]", "pan; or drag beside the cut, or the wheel with shift"], ["m M", "the life of the next message, of the one before"],
];

function legend(data) {
  const sign = (name, words) => make("span", {}, make("i", { class: `brl-sign s-${name}` }), words);
  const hint = make("span", {}, "Drag a circle: the cut at a task; the line between them: the whole cut; beside it: the picture.");
  return make("p", { class: "brl-legend" }, hint, sign("ahead", "ahead of the cut"), sign("behind", "behind it"), sign("in-flight", "in flight, recorded"),
    sign("wrong", "orphan, or lost"), sign("barrier", "barrier"), sign("control", "watermark, cancel, end"), sign("held", "buffered"), sign("ring", "was recorded"), sign("snapshot", "snapshot"));
}

function clipped(text, letters) { return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`; }

function tickText(value, unit) {
  if (unit >= 1e9) return `${Math.round(value / 1e9)} s`;
  if (unit >= 1e6) return value >= 1e9 ? `${(value / 1e9).toFixed(unit >= 1e8 ? 1 : unit >= 1e7 ? 2 : 3)} s` : `${Math.round(value / 1e6)} ms`;
  return value >= 1e9 ? `${(value / 1e9).toFixed(6)} s` : unit >= 1e3 ? `${(value / 1e6).toFixed(3)} ms` : `${value} ns`;
}

function arrow(x1, y1, x2, y2) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length, size = Math.min(7, length / 2);
  const f = (n) => n.toFixed(1);
  return `M${f(x1)} ${f(y1)}L${f(x2)} ${f(y2)}M${f(x2 - size * ux + size * 0.5 * uy)} ${f(y2 - size * uy - size * 0.5 * ux)}L${f(x2)} ${f(y2)}L${f(x2 - size * ux - size * 0.5 * uy)} ${f(y2 - size * uy + size * 0.5 * ux)}`;
}

/** The part of a line that is between two verticals; nulls if there is none. */
function cropped(x1, y1, x2, y2, low, high) {
  if (Math.max(x1, x2) < low || Math.min(x1, x2) > high) return [null, null, null, null];
  const at = (x) => (x2 === x1 ? y2 : y1 + ((y2 - y1) * (x - x1)) / (x2 - x1));
  const cut = (x, y) => (x < low ? [low, at(low)] : x > high ? [high, at(high)] : [x, y]);
  return [...cut(x1, y1), ...cut(x2, y2)];
}

function distance(x, y, { x1, y1, x2, y2 }) {
  const dx = x2 - x1, dy = y2 - y1, along = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
}

// ------------------------------------------------------------------------------------------------- where it is shown

/** Show every run of a page: each element `.brl-run` has its data in the script behind it. */
export function mountAll(root = document) {
  return Promise.all([...root.querySelectorAll(".brl-run")].map((element) => mount(element, JSON.parse(element.nextElementSibling.textContent))));
}

/** For anywidget: the data in, and the cut out. */
export default {
  async render({ model, el }) {
    const run = document.createElement("div");
    el.append(run);
    let view = null;
    const show = async () => {
      view?.destroy();
      view = await mount(run, JSON.parse(model.get("data")), { oncut: (cut, words) => { model.set("cut", cut); model.set("verdict", `${words.head}: ${words.text}`); model.save_changes(); } });
    };
    await show();
    model.on("change:data", show);
    return () => view?.destroy();
  },
};
