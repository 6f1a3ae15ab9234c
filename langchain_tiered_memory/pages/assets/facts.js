// Facts: what was stated, by whom, in which messages; and what took the place of what.

function factCard(fact, wanted) {
  const older = (data.replaced.get(fact.id) || []).filter((one) => one.id !== fact.id);
  const sources = fact.sources.length ? fact.sources : [fact.seq];
  const newer = fact.superseded_by && data.fact.get(fact.superseded_by);
  return h("article", { class: `card fact ${fact.status}`, "aria-label": fact.text.slice(0, 80) },
    h("p", { class: "statement", dir: "auto" }, fact.status === "superseded" ? h("s", null, words(fact.text, wanted)) : words(fact.text, wanted)),
    fact.status === "superseded"
      ? h("p", { class: "line" }, badge("replaced", "warn"),
        newer ? h("span", { dir: "auto" }, "by ", words(newer.text)) : "by a fact that this page does not have") : null,
    older.length ? h("ul", { class: "older" }, older.map((one) =>
      h("li", { dir: "auto" }, h("span", { class: "soft" }, "in place of "), h("s", null, words(one.text)), " ", messageLink(one.seq)))) : null,
    h("p", { class: "line soft" }, badge(fact.kind), h("span", { dir: "auto" }, words(fact.speaker || WHO[fact.by])), time(fact.at),
      h("span", null, sources.length > 1 ? "from messages " : "from message ", sources.slice(0, 12).map((seq, at) => [at ? ", " : "", messageLink(seq)]),
        sources.length > 12 ? ` and ${count(sources.length - 12)} more` : ""),
      fact.mentions > 1 ? h("span", null, `mentioned ${count(fact.mentions)} times`) : null,
      fact.by_model ? h("span", null, "worded by a model") : null));
}

function factsView() {
  const state = { wanted: [] };
  const list = new LongList({ label: "Facts", make: (one) => factCard(one, state.wanted), guess: 90 });
  const status = h("p", { class: "soft", role: "status", "aria-live": "polite" });
  const query = h("input", { type: "search", id: "fact-query", autocomplete: "off", dir: "auto" });
  const kind = choice("fact-kind", [["", "every kind"], ...[...new Set(data.facts.map((one) => one.kind))].sort().map((one) => [one, one])]);
  const standing = choice("fact-standing", [["active", "facts that hold"], ["superseded", "facts that were replaced"], ["", "both"]]);
  const search = () => {
    state.wanted = wordsOf(query.value);
    const shown = data.facts.filter((one) => (!kind.value || one.kind === kind.value) && (!standing.value || one.status === standing.value)
      && state.wanted.every((word) => folded(`${one.text} ${one.speaker}`).includes(word)));
    list.show(shown);
    status.textContent = `${plural(shown.length, "fact")} of ${count(data.facts.length)}.`;
  };
  const form = h("form", { class: "line filters bar", role: "search", "aria-label": "Facts", onsubmit: (event) => event.preventDefault(), oninput: search },
    field("Search", query), field("Kind", kind), field("Show", standing));
  const cut = data.facts.length >= data.facts_cut ? note(`These are the ${count(data.facts_cut)} weightiest.`) : null;
  const box = h("section", { class: "view" }, heading("Facts"),
    h("p", { class: "lead" }, "Statements with the messages that make them. A correction replaces what it corrects."),
    cut, form, status, list.host);
  search();
  return { box };
}
