// Figures: overview, the window over time, checkpoints, files and cost.

function tile(value, name, route, more) {
  return h("a", { class: "card tile", href: `#/${route}` }, h("span", { class: "value" }, value), h("span", null, name), more ? h("span", { class: "soft" }, more) : null);
}

function overviewView() {
  const { metrics } = data;
  const first = data.entries[0];
  const last = data.entries[data.entries.length - 1];
  const standing = data.facts.filter((one) => one.status === "active").length;
  const finished = data.summaries.filter((one) => FINISHED.has(one.state)).length;
  const calls = data.entries.filter((one) => one.role === "assistant").length;
  const files = data.files.length || data.touched.length;
  const faults = [["failed", "could not be written yet"], ["degraded", "written by a fallback, to be made again"], ["stale", "of messages that were edited since"]]
    .filter(([name]) => metrics[name]).map(([name, text]) => h("li", null, `${plural(metrics[name], "summary")} ${text}`));
  return { box: h("section", { class: "view" }, heading("Overview"),
    h("p", { class: "lead" }, "From ", time(first.at), " to ", time(last.at), ". Nothing is lost: summaries stand for what a window has no room for."),
    strata({ onpick: (one) => { location.hash = `#/summaries/${one.id}`; } }),
    h("div", { class: "tiles" },
      tile(count(metrics.messages), named(metrics.messages, "message"), "messages", plural(metrics.tokens, "token")),
      tile(count(finished), named(finished, "summary"), "summaries", finished ? `the highest are ${metrics.overall_ratio > 0.99 ? "over 99 %" : share(metrics.overall_ratio)} shorter` : "none yet"),
      tile(count(standing), standing === 1 ? "fact that holds" : "facts that hold", "facts", data.facts.length > standing ? `${count(data.facts.length - standing)} replaced` : null),
      tile(count(calls), named(calls, "call"), "calls", "what the model saw at each"),
      tile(count(data.outcomes.length), named(data.outcomes.length, "condensation"), "decisions", data.outcomes.length ? `the last at message ${count(data.outcomes[0].last_seq)}` : null),
      tile(count(data.checkpoints.length), named(data.checkpoints.length, "checkpoint"), "checkpoints"),
      tile(count(files), `${named(files, "file")} ${data.files.length ? "kept" : "touched"}`, "files"),
      tile(metrics.cost === null ? count(metrics.spent.calls) : money(metrics.cost), metrics.cost === null ? `${named(metrics.spent.calls, "model call")} for summaries` : "spent on summaries", "cost")),
    faults.length ? h("div", null, h("h3", null, "To look at"), h("ul", null, faults)) : null,
    metrics.levels.length ? table("Summaries by level", ["level", "#summaries", "#tokens", "#stand for", "#saved"],
      metrics.levels.map((one, at) => [`Level ${one.level}`, count(one.summaries), count(one.tokens), count(one.source_tokens), share(metrics.ratios[at])])) : null,
    data.tasks.length ? table("Tasks", ["task", "state", "started", "messages"], data.tasks.map((one) => [words(one.id), one.state, time(one.started_at),
      one.state === "waiting" ? "" : [messageLink(one.first_seq), one.last_seq ? [" to ", messageLink(one.last_seq)] : " on"]])) : null) };
}

const ZONES = [["safe", 0], ["warning", 0.7], ["danger", 0.85], ["critical", 0.95]];

// Everything that the database keeps of how full the window was, oldest first.
function windowPoints() {
  const points = [];
  for (const one of data.checkpoints) {
    if (one.state && one.state.used_tokens) points.push({ at: one.at, seq: one.last_seq, track: one.track, used: one.state.used_tokens, limit: one.state.limit_tokens, zone: one.state.zone, from: "checkpoint" });
  }
  for (const one of data.outcomes) {
    points.push({ at: one.at, seq: one.last_seq, track: one.track, used: one.tokens_before, from: `before it was ${one.kind}` });
    if (one.tokens_after !== one.tokens_before) points.push({ at: one.at, seq: one.last_seq, track: one.track, used: one.tokens_after, from: `after it was ${one.kind}` });
  }
  for (const one of data.sizes) points.push({ at: one.at, seq: (data.entries.findLast((entry) => entry.at <= one.at) || { seq: 1 }).seq, track: one.track, used: one.tokens, limit: one.limit, zone: one.zone, from: "context of this process" });
  return points.sort((one, other) => one.seq - other.seq || one.at - other.at || other.used - one.used);
}

function windowView() {
  const all = windowPoints();
  const known = all.filter((one) => one.limit);
  const limit = known.length ? known[known.length - 1].limit : null;
  const intro = all.length ? "How full the window was at checkpoints and condensations. Calls in between left no figure."
    : "There are no figures of how full the window was: no checkpoint was saved, and nothing was condensed.";
  const columns = ["when", "at message", "#tokens", "#of the limit", "zone", "known from"];
  const rows = all.map((one) => [time(one.at), messageLink(one.seq), count(one.used), one.limit ? share(one.used / one.limit) : "",
    one.zone ? h("span", { class: `zone ${one.zone}` }, one.zone) : "", one.from]);
  return { box: h("section", { class: "view" }, heading("Window over time"), h("p", { class: "lead" }, intro),
    all.length ? [chart(all, limit), later(`The same as a table: ${plural(all.length, "figure")}`, () => table("Window over time", columns, rows))] : null) };
}

// Of the limit: a history that a view is opened on may need many times as much, and would flatten all else.
const TOP = 1.5;

function chart(points, limit) {
  const [width, height] = [1000, 320];
  const last = Math.max(...points.map((one) => one.seq), 1);
  const largest = Math.max(...points.map((one) => one.used));
  const most = (limit ? Math.min(Math.max(limit * 1.05, largest), limit * TOP) : largest) || 1;
  const x = (at) => (points[at].seq / last) * width;
  const y = (tokens) => height - (Math.min(tokens, most) / most) * (height - 10);
  const bands = limit ? ZONES.map(([name, from], at) => {
    const until = at + 1 < ZONES.length ? ZONES[at + 1][1] * limit : most;
    return svg("rect", { class: `band ${name}`, x: 0, width, y: y(until), height: Math.max(y(from * limit) - y(until), 0) });
  }) : [];
  const path = points.map((one, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(one.used).toFixed(1)}`).join("");
  const label = `${plural(points.length, "figure")} from ${count(Math.min(...points.map((one) => one.used)))} to ${plural(largest, "token")}${limit ? `, limit ${count(limit)}` : ""}`;
  return h("figure", { class: "chart" }, svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    bands, svg("path", { class: "curve", d: path })),
    h("figcaption", { class: "soft line" }, limit ? ZONES.map(([name, from]) => h("span", null, h("span", { class: `swatch band ${name}` }), `${name} from ${share(from)}`)) : "The limit of the window is not known: no checkpoint kept it.",
      h("span", { class: "end" }, `messages 1 to ${count(last)}`, largest > most ? `, cut at ${share(TOP)}` : "", limit ? `, limit ${plural(limit, "token")}` : "")));
}

function checkpointCard(one) {
  const named = one.reasons.join(", ").replaceAll("_", " ");
  const title = h("span", { class: "title" }, h("strong", null, words(named)), " ", one.state && one.state.zone && !one.reasons.includes(one.state.zone) ? h("span", { class: `zone ${one.state.zone}` }, one.state.zone) : null,
    one.archived ? badge("archived") : null, one.damaged ? badge("damaged", "bad") : null,
    h("span", { class: "soft" }, ` ${when(one.at)} · at message ${count(one.last_seq)} · ${bytes(one.stored_bytes)}`));
  return later(title, () => checkpointBody(one), { class: "node", "data-checkpoint": one.id });
}

function checkpointBody(one) {
  if (one.damaged) return note(words(one.damaged));
  const state = one.state || {};
  const sums = Object.entries(one.file_checksums);
  return h("div", { class: "body" },
    terms([
      ["Checkpoint", one.id],
      ["LangGraph checkpoint", one.langgraph_checkpoint_id],
      ["Track", words(one.track)],
      ["Window", state.used_tokens ? `${count(state.used_tokens)} of ${plural(state.limit_tokens, "token")}` : null],
      ["Phase", one.phase && words(one.phase)],
      ["Tasks", one.tasks.length ? words([...one.tasks.filter((task) => task.state !== "finished").map((task) => `${task.id} (${task.state})`),
        `${count(one.tasks.filter((task) => task.state === "finished").length)} finished`].join(", ")) : null],
      ["Pinned messages", one.pinned.length ? count(one.pinned.length) : null],
      ["Given with it", one.given && Object.keys(one.given).length ? h("code", null, words(JSON.stringify(one.given))) : null],
      ["Hot files", one.tiers && one.tiers.hot.length ? words(one.tiers.hot.join(", ")) : null],
    ]),
    sums.length ? later(`Checksums of ${plural(sums.length, "file")}`, () => table("SHA-256", ["file", "checksum"], sums.map(([path, sum]) => [words(path), h("code", null, sum.slice(0, 16))]))) : null,
    state.pruning && state.pruning.length ? later(`${plural(state.pruning.length, "group")} that would have left next`, () => table("Planned", ["from message", "why"], state.pruning.map((row) => [messageLink(row.first_seq), words(row.reason)]))) : null,
    later(state.view ? `The ${plural(one.messages.length, "message")} of the view, as they stood` : `The ${plural(one.messages.length, "message")} that were the newest`,
      () => [state.left_out ? note(`${plural(state.left_out, "message")} more had no room in the checkpoint.`) : "", saidList(one.messages)]));
}

function checkpointsView() {
  const host = h("div", { class: "tree" }, data.checkpoints.map(checkpointCard));
  return { box: h("section", { class: "view" }, heading("Checkpoints"),
    h("p", { class: "lead" }, data.checkpoints.length ? "Saved states of the run, newest first: what they hold, and the messages of the view at that time." : "No checkpoint was made."), host),
  open: (id) => openNode(host, "checkpoint", id) };
}

function filesView() {
  const of = (tier) => data.files.filter((one) => one.tier === tier);
  const columns = ["file", "kind", "#size", "#opened", "last opened", "state"];
  const row = (one) => [h("code", null, words(one.path)), one.kind, bytes(one.size), count(one.accesses), time(one.accessed_at),
    [one.pinned ? badge("pinned", "pin") : null, one.deleted ? badge("deleted", "warn") : null]];
  const about = { hot: "in use now", warm: "used lately", cold: "kept for the session" };
  const tiers = ["hot", "warm", "cold"].filter((tier) => of(tier).length).map((tier) =>
    h("div", null, h("h3", null, h("span", { class: `zone ${tier}` }, tier), ` ${plural(of(tier).length, "file")}, ${about[tier]}`), table(`Files in ${tier}`, columns, of(tier).map(row))));
  const packed = data.tiers.compression ? ` Compressed ${data.tiers.compression.toFixed(1)} to 1.` : "";
  return { box: h("section", { class: "view" }, heading("Files"),
    h("p", { class: "lead" }, data.files.length ? `Files of the run in their tiers; hot and warm are ${share(data.tiers.utilisation)} full.${packed}` : "No file is kept in tiers."),
    data.last_run ? lastRun(data.last_run) : null, tiers,
    data.touched.length ? [h("h3", null, "Touched by tool calls"), table("Touched by tool calls, latest first", ["file", "operation", "tool", "#turn", "message"],
      data.touched.map((one) => [h("code", null, words(one.path)), one.operation, words(one.tool), count(one.turn), messageLink(one.seq)]))] : null) };
}

function lastRun(run) {
  const ms = (seconds) => `${(seconds * 1000).toLocaleString("en", { maximumFractionDigits: 1 })} ms`;
  const rows = Object.entries(run.timings).map(([name, one]) => [name, count(one.count), ms(one.p50), ms(one.p99)]);
  return h("div", null, h("h3", null, "The last run"), h("p", null, time(run.started_at), " to ", time(run.at), `; ${plural(run.alerts.length, "alert")}.`),
    rows.length ? table("Times of accesses by the tier that a file was in, and of moves between tiers", ["of", "#times", "#median", "#99 %"], rows) : null,
    run.alerts.length ? later(plural(run.alerts.length, "alert"), () => table("Alerts", ["when", "what", "why"], run.alerts.map((one) => [time(one.at), one.name.replaceAll("_", " "), words(one.reason)]))) : null);
}

function costView() {
  const { costs, metrics } = data;
  const priced = costs.spent_cost !== null;
  const rows = costs.rows.map((one) => [link(short(one.outcome_id), `decisions/${one.outcome_id}`), time(one.at),
    plural(one.spent.input_tokens + one.spent.output_tokens, "token"), count(one.saved_tokens_per_call), count(one.calls_since), count(one.saved_tokens),
    one.breaks_even_after === null ? "never" : one.paid ? "paid" : `after ${plural(Math.ceil(one.breaks_even_after), "call")}`]);
  return { box: h("section", { class: "view" }, heading("Cost"),
    h("p", { class: "lead" }, "What condensing cost, and how many tokens later calls saved."),
    terms([
      ["Model calls", count(costs.spent.calls)],
      ["Tokens read", count(costs.spent.input_tokens)],
      ["Tokens written", count(costs.spent.output_tokens)],
      ["Spent", priced ? money(costs.spent_cost) : "no price is set"],
      ["Tokens saved in later calls", count(costs.saved_tokens)],
      ["Saved", priced && costs.saved_cost !== null ? money(costs.saved_cost) : null],
      ["Prompt caches restarted", count(costs.prefix_breaks)],
      ["Saved by each call over the whole history", metrics.saved_cost_per_call === null ? plural(metrics.tokens_saved, "token") : money(metrics.saved_cost_per_call)],
    ]),
    rows.length ? table("Condensations", ["decision", "when", "#took", "#saves per call", "#calls since", "#saved", "break-even"], rows) : null) };
}
