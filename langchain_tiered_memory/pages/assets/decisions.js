// Decisions about views: what was condensed, what it changed, what left the view, and whether it was undone.

const outcomeTitle = (one) => {
  const done = { condensed: "condensed", masked: "tool outputs masked", truncated: "cut to fit", failed: "could not be condensed" };
  return `${done[one.kind] || one.kind} at message ${count(one.last_seq)}`;
};

function outcomeCard(one) {
  const freed = one.tokens_before - one.tokens_after;
  const title = h("span", { class: "title" }, h("strong", null, outcomeTitle(one)), " ",
    trackBadge(one.track),
    one.undone_at ? badge("undone", "warn") : null, one.kind === "failed" ? badge((one.reason || "failed").replaceAll("_", " "), "bad") : null,
    h("span", { class: "soft" }, ` ${when(one.at)} · ${count(one.tokens_before)} → ${plural(one.tokens_after, "token")}`),
    h("span", { class: "first" }, words(one.why)));
  return later(title, () => outcomeBody(one, freed), { class: "node", "data-outcome": one.id });
}

function outcomeBody(one, freed) {
  const before = one.before === null ? null : data.views[one.before];
  const after = one.after === null ? null : data.views[one.after];
  const changed = after && (before ? before.text : "") !== after.text;
  return h("div", { class: "body" },
    sizes(one),
    terms([
      ["Decision", one.id],
      ["Freed", plural(freed, "token")],
      ["Messages word for word", `${count(one.messages_before)} → ${count(one.messages_after)}`],
      ["Steps", one.steps.join(", ").replaceAll("_", " ")],
      ["Reason", one.reason && one.reason.replaceAll("_", " ")],
      ["Error", one.error && words(one.error)],
      ["Model calls", one.spent.calls ? `${count(one.spent.calls)}, ${plural(one.spent.input_tokens, "token")} read, ${count(one.spent.output_tokens)} written` : null],
      ["Cost", one.cost === null ? null : money(one.cost)],
      ["Prompt cache", one.breaks_prefix ? "had to begin anew" : null],
      ["Undone", one.undone_at && when(one.undone_at)],
    ]),
    one.came.length ? later(`${plural(one.came.length, "piece")} came in: summaries, and lines that name messages`, () => reasons("What came in", one.came)) : null,
    one.left_out.length ? later(`${plural(one.left_out.length, "thing")} left the view: what was dropped, and why`, () => reasons("What left the view. All of it is still in the transcript.", one.left_out)) : null,
    changed ? later("What changed in the text for older messages", () => difference(before ? before.text : "", after.text)) : null,
    mayChange && !one.undone_at && after ? liveUndo(one) : null);
}

function sizes(one) {
  const most = Math.max(one.tokens_before, one.tokens_after, 1);
  const bar = (name, tokens, kind) => svg("g", null,
    svg("rect", { class: kind, x: 0, y: name ? 14 : 0, width: (tokens / most) * 1000, height: 10, rx: 2 }));
  return h("div", { class: "sizes", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 1000 24", preserveAspectRatio: "none" },
    bar(0, one.tokens_before, "shown-headline"), bar(1, one.tokens_after, "shown-place")));
}

const reasons = (caption, rows) => table(caption, ["what", "reason", "#tokens"], rows.map((row) => [nameOf(row.what), words(row.reason), row.tokens ? count(row.tokens) : ""]));

// Lines that went, came and stayed; the longest common sequence where that is quickly found.
function difference(before, after) {
  const old = before.split("\n");
  const young = after.split("\n");
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < young.length - head && old[old.length - 1 - tail] === young[young.length - 1 - tail]) tail += 1;
  const middle = changes(old.slice(head, old.length - tail), young.slice(head, young.length - tail));
  const rows = [...old.slice(0, head).map((line) => [" ", line]), ...middle, ...old.slice(old.length - tail).map((line) => [" ", line])];
  const names = { "+": "came: ", "-": "went: ", " ": "" };
  return h("div", { class: "difference", dir: "auto" }, rows.map(([sign, line]) =>
    h("div", { class: { "+": "came", "-": "went", " ": "stayed" }[sign] }, h("span", { class: "unseen" }, names[sign]),
      h("span", { class: "sign", "aria-hidden": "true" }, sign), words(line))));
}

function changes(old, young) {
  if (old.length * young.length > 1e6) return [...old.map((line) => ["-", line]), ...young.map((line) => ["+", line])];
  const best = Array.from({ length: old.length + 1 }, () => new Uint32Array(young.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = young.length - 1; j >= 0; j -= 1) {
      best[i][j] = old[i] === young[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const rows = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) { rows.push([" ", old[i]]); i += 1; j += 1; }
    else if (i < old.length && (j >= young.length || best[i + 1][j] >= best[i][j + 1])) { rows.push(["-", old[i]]); i += 1; }
    else { rows.push(["+", young[j]]); j += 1; }
  }
  return rows;
}

function decisionsView() {
  const host = h("div", { class: "tree" }, data.outcomes.map(outcomeCard));
  const open = (id) => openNode(host, "outcome", id);
  const box = h("section", { class: "view" }, heading("Condensations"),
    h("p", { class: "lead" }, data.outcomes.length
      ? "Decisions about the view, newest first. A condensation changes what a model is shown, never the transcript."
      : "There are no decisions yet: nothing was condensed."), host);
  return { box, open };
}

function openNode(host, name, id) {
  const node = host.querySelector(`details[data-${name}="${CSS.escape(id)}"]`);
  if (!node) return;
  node.open = true;
  node.scrollIntoView({ block: "start" });
  node.firstElementChild.focus({ preventScroll: true });
}
