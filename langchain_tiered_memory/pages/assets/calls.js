// What the model saw at a call, and why not something else: read from the decisions that are kept about views.

const SHOWN = {
  whole: ["by a summary", "shown-whole"],
  short: ["by a summary in short", "shown-short"],
  headline: ["by a headline", "shown-headline"],
  joined: ["in a headline with its neighbours", "shown-headline"],
  untold: ["only named", "shown-untold"],
  place: ["word for word", "shown-place"],
  cut: ["by its beginning and end", "shown-place"],
  quoted: ["among the quotes of older messages", "shown-short"],
  left: ["left out", "shown-left"],
  unknown: ["not told by what is kept", "shown-unknown"],
};

// Whether a decision gave the view another plan. Where a message that the plan may speak of was forgotten, the plan is
// gone and the decision is still known.
const PLANNED = new Set(["masked", "condensed", "slid", "pruned"]);
const changedView = (one) => one.after !== null || (one.kind !== "failed" && one.steps.every((step) => PLANNED.has(step)));

// The view that was in force when a call was made: of the decisions before it the last that changed the view; before
// the first of them, what that one found. `lost`: its plan is not known any more.
function viewAt(track, seq, asked) {
  const mine = data.outcomes.filter((one) => one.track === track && changedView(one));
  const past = mine.filter((one) => one.last_seq < seq);
  const next = mine[mine.length - past.length - 1] || null;
  const decision = past[0] || null;
  const undone = Boolean(decision && decision.undone_at && (!asked || asked.at >= decision.undone_at));
  const told = decision || next;
  const index = !told ? null : decision && !undone ? decision.after : told.before;
  return { decision, next, undone, index, lost: Boolean(told) && told.after === null, view: index === null ? null : data.views[index] };
}

const decidedFor = (track, seq, before) =>
  data.outcomes.filter((one) => one.track === track && one.last_seq < seq && one.last_seq >= before);

function stretchOf(view) {
  if (!view.told) view.told = new Map(view.stretches.flatMap((one) => one.summary_ids.map((id) => [id, one])));
  return view.told;
}

// How one message stood in a call on a track: a key of SHOWN, and why in a sentence.
function standing(entry, call) {
  const { view, track, seq } = call;
  if (entry.seq >= seq) return ["left", "It came after this call."];
  if (!view) {
    if (entry.track === track) return ["place", "This view had no summary: it showed every message of the track word for word."];
    return ["left", `It is on the track ${entry.track}, and this view had no summary.`];
  }
  const above = chain(entry);
  const told = above.map((id) => stretchOf(view).get(id)).find((one) => one);
  const own = entry.track === track;
  const inPlace = own && (view.kept_groups.includes(entry.group)
    || (entry.seq >= view.whole_from && !view.left_groups.includes(entry.group)));
  if (inPlace && !told) {
    return view.cut.includes(entry.seq) ? ["cut", "The view showed its beginning and end: it is a long tool output."]
      : ["place", "The view showed it word for word."];
  }
  if (own && view.kept_groups.includes(entry.group)) return ["place", "The view showed it word for word, and a summary mentions it too."];
  if (view.quoted.includes(entry.seq)) return ["quoted", "It was quoted as far as the quotes had room."];
  if (told) {
    const id = told.summary_ids.find((one) => above.includes(one));
    return [told.shown, ["It was told ", SHOWN[told.shown][0], ": ", summaryLink(id, `summary ${short(id)}`), "."]];
  }
  const gap = view.stretches.find((one) => !one.summary_ids.length && one.first_seq <= entry.seq && entry.seq <= one.last_seq);
  if (gap && own) return ["untold", `A line named it and nothing told of it: ${gap.reason}.`];
  if (own && view.left_groups.includes(entry.group)) return ["left", leftReason(entry, call)];
  if (!own) return ["left", `It is on the track ${entry.track}, and no summary of this view stood for it.`];
  return ["unknown", "This cannot be told any more: a summary that stood for it may have been removed or rewritten since."];
}

function leftReason(entry, call) {
  for (const one of data.outcomes) {
    if (one.last_seq >= call.seq || one.track !== call.track) continue;
    const row = one.left_out.find((left) => left.what === entry.id || covers(left.what, entry.seq));
    if (row) return `It was left out: ${row.reason}.`;
  }
  return "It was left out of the view.";
}

function covers(what, seq) {
  const found = /^(\d+)-(\d+)$/.exec(what);
  return Boolean(found) && Number(found[1]) <= seq && seq <= Number(found[2]);
}

function callAt(track, place) {
  const all = calls(track);
  const asked = all[place] || null;
  const before = place > 0 ? all[place - 1].seq : 0;
  const seq = asked ? asked.seq : Infinity;
  return { track, seq, asked, before, place, of: all.length, ...viewAt(track, seq, asked) };
}

function callView() {
  const state = { track: data.about.track, place: 0, why: "" };
  const tracks = choice("call-track", data.tracks.map((one) => [one, one]));
  const number = h("input", { type: "number", id: "call-number", min: "1", inputmode: "numeric" });
  const title = h("h3", { id: "call-title", "aria-live": "polite" });
  const result = h("div", { class: "call" });
  const back = button("← Before", () => { state.place -= 1; draw(); });
  const forth = button("Next →", () => { state.place += 1; draw(); });
  const draw = () => {
    state.place = Math.max(0, Math.min(state.place, calls(state.track).length));
    const call = callAt(state.track, state.place);
    tracks.value = state.track;
    number.value = state.place + 1;
    number.max = call.of + 1;
    back.disabled = state.place === 0;
    forth.disabled = state.place === call.of;
    title.replaceChildren(...callTitle(call).flat());
    result.replaceChildren(...callReport(call).filter((one) => one));
  };
  tracks.addEventListener("change", () => { state.track = tracks.value; state.place = Infinity; draw(); });
  number.addEventListener("change", () => { state.place = Number(number.value) - 1; draw(); });
  if (!data.tracks.includes(state.track)) [state.track] = data.tracks;
  state.place = Infinity;
  draw();
  const box = h("section", { class: "view" }, heading("What the model saw"),
    h("p", { class: "lead" }, "Each of the assistant's messages is a call. Choose one to see what its context held, and ask why any message was there or not."),
    data.contexts.length ? h("div", null, h("h3", null, "Contexts on this page"), h("p", { class: "soft" }, "These were passed in when the page was made. They are word for word, with their accounts."), data.contexts.map(contextCard)) : null,
    h("div", { class: "line bar" }, data.tracks.length > 1 ? field("Track", tracks) : null, field("Call", number), back, forth), title, result);
  const open = (seq) => {
    const entry = data.bySeq.get(Number(seq));
    if (!entry) return;
    state.track = entry.track;
    const at = calls(entry.track).findIndex((one) => one.seq >= entry.seq);
    state.place = at < 0 ? Infinity : at;
    draw();
  };
  const at = () => (calls(state.track)[state.place] || {}).seq;
  return { box, open, at };
}

function callTitle(call) {
  const { asked, track } = call;
  const turn = data.entries.filter((one) => one.track === track && one.role === "user" && one.seq < call.seq).length;
  return asked ? [`Call ${count(call.place + 1)} of ${count(call.of)}`, h("span", { class: "soft" }, ` · turn ${count(turn)} · wrote `), messageLink(asked.seq), h("span", { class: "soft" }, ` · `, time(asked.at))]
    : ["The next call", h("span", { class: "soft" }, ` · after ${plural(call.of, "call")}: what it would be shown now`)];
}

function callReport(call) {
  const { view, track } = call;
  const counted = tally(call);
  const decided = decidedFor(track, call.seq, call.before);
  const saved = data.checkpoints.filter((one) => one.state && one.state.view && one.track === track && one.last_seq < call.seq && one.last_seq >= call.before);
  if (call.lost) return [note(exactness(call))];
  return [
    note(exactness(call)),
    mixture(counted),
    decided.length ? h("p", null, "Decided for this call: ", decided.map((one, at) => [at ? "; " : "", link(outcomeTitle(one), `decisions/${one.id}`)]), ".") : null,
    saved.length ? h("p", null, "A checkpoint kept the messages of the view at this call: ",
      saved.map((one, at) => [at ? ", " : "", link(one.reasons.join(", ").replaceAll("_", " "), `checkpoints/${one.id}`)]), ".") : null,
    askWhy(call),
    view && view.stretches.length ? later(`How older messages were summarised: ${plural(view.stretches.length, "piece")}`, () => stretchTable(view)) : null,
    view && view.text ? later("The text that stood for older messages", () => prose(view.text)) : null,
    view && view.facts ? later("The list of facts", () => prose(view.facts)) : null,
    view && view.files ? later("The list of files", () => prose(view.files)) : null,
    view && view.parts ? later("Parts of files", () => prose(view.parts)) : null,
    later(`${plural(counted.groups.place.length, "message")} that stood word for word`, () => shortList(counted.groups.place)),
  ];
}

function exactness({ decision, next, undone, index, lost }) {
  const beside = " What each request adds is not kept: system prompt, tools, what recall found, goal and pins of that moment.";
  if (!decision && !next) return `There is no decision about this track's view: nothing was condensed, and every message was shown word for word.${beside}`;
  if (lost) return "The view was changed, and its plan is no longer known: a message that it may mention was forgotten, or another version wrote it. So the page cannot say what this call showed.";
  if (!decision) return `This is what the first stored decision, at message ${count(next.last_seq)}, found.${beside}`;
  const at = undone ? `The decision at message ${count(decision.last_seq)} was undone: this is the view before it.`
    : `This is the view as decided at message ${count(decision.last_seq)}.`;
  const until = !next ? " It is the last decision: a pin, an edit or a removal since may have changed the view."
    : next.before === index ? " The next decision found it unchanged, so which messages and summaries stood here, and in which form, is exact; the words of a summary shown whole are today's."
      : ` The decision at message ${count(next.last_seq)} found another one: in between a pin, an edit or a removal changed it, or calls with another budget had a view of their own.`;
  return `${at}${until}${beside}`;
}

function tally(call) {
  const groups = { place: [] };
  const numbers = {};
  for (const entry of data.entries) {
    if (entry.seq >= call.seq || (entry.track !== call.track && !call.view)) continue;
    if (entry.track !== call.track && !chain(entry).length) continue;
    const [key] = standing(entry, call);
    if (entry.track !== call.track && key === "left") continue;
    numbers[key] = numbers[key] || { messages: 0, tokens: 0 };
    numbers[key].messages += 1;
    numbers[key].tokens += entry.tokens;
    if (key === "place" || key === "cut") groups.place.push(entry);
  }
  return { numbers, groups };
}

function mixture({ numbers }) {
  const order = ["untold", "left", "unknown", "joined", "headline", "short", "whole", "quoted", "cut", "place"];
  const keys = order.filter((key) => numbers[key]);
  const all = keys.reduce((sum, key) => sum + numbers[key].messages, 0) || 1;
  let from = 0;
  const bars = keys.map((key) => {
    const width = (numbers[key].messages / all) * 1000;
    const bar = svg("rect", { class: SHOWN[key][1], x: from, y: 0, width: Math.max(width - 1.5, 1), height: 18, rx: 2 });
    from += width;
    return bar;
  });
  return h("div", { class: "mixture" },
    svg("svg", { viewBox: "0 0 1000 18", preserveAspectRatio: "none", "aria-hidden": "true" }, bars),
    h("ul", { class: "plain legend" }, keys.reverse().map((key) => h("li", null, h("span", { class: `swatch ${SHOWN[key][1]}` }),
      h("strong", null, count(numbers[key].messages)), ` ${SHOWN[key][0]} `, h("span", { class: "soft" }, `(${plural(numbers[key].tokens, "token")} in the transcript)`)))));
}

function askWhy(call) {
  const asked = h("input", { type: "number", min: "1", id: "why-number", inputmode: "numeric" });
  const answer = h("div", { role: "status", class: "answer" });
  const form = h("form", { class: "line", onsubmit: (event) => {
    event.preventDefault();
    const entry = data.bySeq.get(Number(asked.value));
    if (!entry) { answer.replaceChildren(note("There is no message with that number.")); return; }
    const [key, why] = standing(entry, call);
    const pinned = entry.pinned && key !== "place" ? " It is pinned now: from then on each context quoted it." : "";
    const recall = key === "place" || entry.seq >= call.seq ? "" : " Recall may have quoted it besides: what it found is not kept.";
    answer.replaceChildren(h("p", null, h("span", { class: `swatch ${SHOWN[key][1]}` }), why, pinned, recall), messageCard(entry, { tools: false }));
  } }, field("Why, or why not, message №", asked), h("button", null, "Ask"));
  return h("div", { class: "why" }, form, answer);
}

function stretchTable(view) {
  return table("Older messages, oldest first", ["messages", "told", "by", "#tokens", "reason"], view.stretches.map((one) => [
    [messageLink(one.first_seq), one.last_seq === one.first_seq ? "" : [" to ", messageLink(one.last_seq)]],
    [h("span", { class: `swatch ${SHOWN[one.shown][1]}` }), SHOWN[one.shown][0]],
    one.summary_ids.slice(0, 4).map((id, at) => [at ? ", " : "", summaryLink(id)]).concat(one.summary_ids.length > 4 ? ` and ${one.summary_ids.length - 4} more` : ""),
    one.tokens ? count(one.tokens) : "", one.reason]));
}

const nameOf = (what) => {
  if (covers(what, Number(/^\d+/.exec(what) || -1))) return messageLink(Number(/^\d+/.exec(what)[0]), `messages ${what}`);
  if (data.summary.has(what)) return summaryLink(what, `summary ${short(what)}`);
  const entries = data.byId.get(what);
  return entries ? messageLink(entries[0].seq) : h("code", null, what);
};

function contextCard(one, at) {
  const title = `Context ${count(at + 1)}: ${count(one.tokens)} of ${plural(one.max_tokens, "token")}; ${count(one.guard.used_tokens)} before it was made to fit, ${one.guard.zone}`;
  return later(title, () => h("div", null,
    table("Its account", ["section", "#tokens", "#at most", "in", "left out, and why"], one.sections.map((part) => [
      part.name, count(part.tokens), count(part.cap),
      [[part.entry_ids, "message"], [part.passage_ids, "passage"], [part.summary_ids, "summary"]]
        .filter(([ids]) => ids.length).map(([ids, noun]) => plural(ids.length, noun)).join(", "),
      leftList(part.left_out)])),
    one.repairs.length ? note(`Repaired for the provider: ${one.repairs.join("; ")}`) : null,
    saidList(one.messages)), { class: "node" });
}

function leftList(rows) {
  if (!rows.length) return "";
  const shown = (from, until) => rows.slice(from, until).map((one) => h("li", null, nameOf(one.what), ": ", words(one.reason)));
  const list = h("ul", { class: "plain" }, shown(0, 5));
  return rows.length > 5 ? [list, later(`${count(rows.length - 5)} more`, () => h("ul", { class: "plain" }, shown(5)))] : list;
}

// Messages as they stood: those of the transcript by their number, what was put together for the call word for word.
function saidList(messages) {
  return h("div", { class: "sent" }, messages.map((one) => {
    if (typeof one === "number") {
      const entry = data.bySeq.get(one);
      return entry ? messageCard(entry, { tools: false }) : note(`Message № ${one}.`);
    }
    return h("article", { class: `card message ${one.role}`, "aria-label": "Put together for the call" },
      h("p", { class: "line" }, h("strong", { class: `role ${one.role}` }, WHO[one.role]), badge("put together for the call")), prose(one.text));
  }));
}
