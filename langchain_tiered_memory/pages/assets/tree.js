// Summaries: what stands for which messages, and each opened down to the originals.

function strata({ onpick }) {
  const [width, row] = [1000, 16];
  const last = Math.max(...data.entries.map((one) => one.seq), 1);
  const finished = data.summaries.filter((one) => FINISHED.has(one.state));
  const top = Math.max(0, ...finished.map((one) => one.level));
  const x = (seq) => ((seq - 1) / last) * width;
  const picture = svg("svg", { class: "strata", viewBox: `0 0 ${width} ${(top + 1) * row}`, preserveAspectRatio: "none",
    role: "img", "aria-label": strataLabel(finished, top) });
  const ground = svg("rect", { class: "layer level-0", x: 0, y: top * row, width, height: row - 2 });
  picture.append(ground);
  for (let level = 1; level <= top; level += 1) {
    const mine = finished.filter((one) => one.level === level);
    const d = mine.map((one) => {
      const [from, until] = [x(one.first_seq), x(one.last_seq + 1)];
      return `M${from.toFixed(1)} ${(top - level) * row}h${Math.max(until - from - 0.8, 0.5).toFixed(1)}v${row - 2}H${from.toFixed(1)}z`;
    }).join("");
    picture.append(svg("path", { class: `layer level-${Math.min(level, 4)}`, d, onclick: (event) => {
      const box = picture.getBoundingClientRect();
      const seq = ((event.clientX - box.left) / box.width) * last + 1;
      onpick(mine.reduce((best, one) => (one.first_seq <= seq && one.first_seq > best.first_seq ? one : best)));
    } }));
  }
  return h("div", { class: "strata-box" }, picture,
    h("p", { class: "soft line" }, h("span", null, "№ 1"),
      h("span", { class: "end" }, `№ ${count(last)}`)));
}

function strataLabel(finished, top) {
  const levels = [];
  for (let level = top; level >= 1; level -= 1) {
    levels.push(`${count(finished.filter((one) => one.level === level).length)} of level ${level}`);
  }
  return levels.length ? `Summaries over ${count(data.entries.length)} messages: ${levels.join(", ")}` : "No summaries yet";
}

const firstLine = (text) => {
  const lines = text.split("\n");
  const bare = (some) => some.map((line) => line.replace(/^[#\s*>-]+/, "").trim()).find((line) => line);
  const telling = bare(lines.filter((line) => !line.startsWith("#"))) || bare(lines) || "";
  return telling.length > 140 ? `${telling.slice(0, 140)} …` : telling;
};

function summaryBadges(one) {
  return [
    FINISHED.has(one.state) ? null : badge(one.state, one.state === "failed" ? "bad" : "warn"),
    one.degraded ? badge("written by a fallback", "warn") : null,
    one.stale ? badge("to be made again", "warn") : null,
    one.by_rules && one.model ? badge("by rules, until a model writes it") : null,
    one.from_tools ? badge("with tool output") : null,
    one.verdict ? badge(`called ${one.verdict}`, one.verdict === "good" ? "" : "warn") : null,
    trackBadge(one.track),
  ];
}

function summaryNode(one) {
  const saved = one.source_tokens ? `, ${share(1 - one.tokens / one.source_tokens)} saved` : "";
  const title = h("span", { class: "title" },
    h("span", { class: `level level-${Math.min(one.level, 4)}` }, `Level ${one.level}`), " ",
    h("span", null, span(one.first_seq, one.last_seq)), " ",
    h("span", { class: "soft" }, `${plural(one.tokens, "token")} for ${count(one.source_tokens)}${saved}`), summaryBadges(one),
    h("span", { class: "first", dir: "auto" }, words(firstLine(one.text) || one.error || "No text yet.")));
  return later(title, () => summaryBody(one), { class: "node", "data-summary": one.id });
}

function summaryBody(one) {
  const below = one.level > 1 ? data.below.get(one.id) || [] : null;
  const originals = one.level > 1 ? null : data.under.get(one.id) || [];
  return h("div", { class: "body" },
    one.text ? prose(one.text) : null,
    terms([
      ["Summary", one.id],
      ["Written by", `${one.model || "nobody yet"}, ${one.strategy}`],
      ["Over", [time(one.first_at), " to ", time(one.last_at)]],
      ["Written on", time(one.created_at)],
      ["Identifiers kept", one.kept_identifiers === null ? null : share(one.kept_identifiers)],
      ["Information lost", one.information_loss === null ? null : share(one.information_loss)],
      ["Last failure", one.error && words(one.error)],
      ["A person's note", one.verdict_note && words(one.verdict_note)],
    ]),
    mayChange && FINISHED.has(one.state) ? liveRating(one) : null,
    below ? h("div", { class: "below" }, h("h3", null, `Made from ${plural(below.length, "summary")}`), below.map(summaryNode)) : null,
    originals ? later(`The ${plural(originals.length, "original message")}`,
      () => h("div", null, originals.map((entry) => messageCard(entry)))) : null);
}

function treeView() {
  const host = h("div", { class: "tree" });
  const open = (id) => {
    const wanted = data.summary.get(id);
    if (!wanted) return;
    const path = [wanted];
    while (path[0].parent_id && FINISHED.has((data.summary.get(path[0].parent_id) || {}).state)) {
      path.unshift(data.summary.get(path[0].parent_id));
    }
    let node = host;
    for (const one of path) {
      node = node.querySelector(`details[data-summary="${CSS.escape(one.id)}"]`);
      if (!node) return;
      if (node.childElementCount === 1) node.append(summaryBody(one));
      node.open = true;
    }
    node.scrollIntoView({ block: "start" });
    node.firstElementChild.focus({ preventScroll: true });
  };
  const pick = (one) => { location.hash = `#/summaries/${one.id}`; };
  const tops = roots();
  const waiting = data.summaries.filter((one) => !FINISHED.has(one.state));
  const bare = data.entries.filter((one) => !one.summary || !FINISHED.has((data.summary.get(one.summary) || {}).state));
  host.append(...tops.map(summaryNode));
  const box = h("section", { class: "view" }, heading("Summaries"),
    h("p", { class: "lead" }, tops.length
      ? "Each layer stands for the layer below it. The lowest layer is the messages. Open a summary to see what it was made from, down to the original messages."
      : "No summary is finished yet."),
    tops.length ? strata({ onpick: pick }) : null, host,
    waiting.length ? h("div", null, h("h3", null, `${plural(waiting.length, "summary")} being made`), waiting.map(summaryNode)) : null,
    bare.length ? later(`${plural(bare.length, "message")} that no summary stands for yet`, () => shortList(bare)) : null);
  return { box, open };
}

function shortList(entries) {
  const list = new LongList({ label: "Messages", make: (one) => messageCard(one) });
  list.show(entries);
  return list.host;
}
