// Messages: the whole transcript in order, searched and filtered; and one message, here and wherever it is shown.

const CLAMP = 1400;
const WHO = { user: "User", assistant: "Assistant", tool: "Tool", system: "System", other: "Other" };
const opened = new Set();

function messageCard(entry, { wanted = [], tools = true } = {}) {
  const who = entry.name ? [WHO[entry.role], " · ", words(entry.name)] : WHO[entry.role];
  const head = h("header", { class: "line" },
    messageLink(entry.seq),
    h("strong", { class: `role ${entry.role}` }, who),
    trackBadge(entry.track),
    entry.pinned ? badge("pinned", "pin") : null,
    entry.kind ? badge(entry.kind.replaceAll("_", " ")) : null,
    entry.task ? badge(`task ${entry.task}`) : null,
    entry.revision ? badge(`edited, ${plural(entry.revision, "earlier wording")}`) : null,
    h("span", { class: "soft end" }, time(entry.at), ` · ${plural(entry.tokens, "token")}`));
  return h("article", { class: `card message ${entry.role}`, "aria-label": `Message ${entry.seq}, ${WHO[entry.role]}` },
    head, messageText(entry, wanted), revisionsOf(entry), tools ? messageTools(entry) : null);
}

// The track, where it is not the one that the page is about.
const trackBadge = (track) => (track && track !== data.about.track ? badge(`track ${track}`, "track") : null);

function messageText(entry, wanted) {
  if (!entry.text) return h("p", { class: "soft" }, "No text.");
  const cut = entry.length > entry.text.length
    ? note(`This page has the first ${count(entry.text.length)} of its ${count(entry.length)} characters.`) : null;
  if (opened.has(entry.seq) || entry.text.length <= CLAMP) return [prose(entry.text, wanted), cut];
  const low = entry.text.toLowerCase();
  const first = Math.min(...wanted.map((word) => low.indexOf(word)).filter((at) => at >= 0), Infinity);
  const from = Number.isFinite(first) && first > CLAMP - 200 ? first - 200 : 0;
  const part = `${from ? "… " : ""}${entry.text.slice(from, from + CLAMP)} …`;
  const box = h("div", null, prose(part, wanted));
  box.append(button(`Show all ${count(entry.text.length)} characters`, () => {
    opened.add(entry.seq);
    const whole = prose(entry.text, wanted);
    whole.tabIndex = -1;
    box.replaceChildren(whole);
    whole.focus();
  }, { class: "quiet" }));
  return [box, cut];
}

function revisionsOf(entry) {
  const earlier = data.revisions[entry.seq];
  if (!earlier || !earlier.length) return null;
  return later("Earlier wording", () => h("div", null, earlier.map((text) => prose(text))));
}

function messageTools(entry) {
  const above = chain(entry);
  return h("footer", { class: "line tools" },
    entry.role === "assistant" ? link("What the model saw", `calls/${entry.seq}`) : null,
    entry.answers ? answered(entry) : null,
    above.length ? h("span", null, "covered by ", summaryLink(above[0], `summary ${short(above[0])}`)) : null,
    mayChange ? liveTools(entry) : null);
}

function answered(entry) {
  const caller = data.bySeq.get(entry.group);
  return caller && caller.seq !== entry.seq ? h("span", null, "answers ", messageLink(caller.seq)) : null;
}

function messagesView() {
  const box = h("section", { class: "view" });
  const list = new LongList({ label: "Messages", make: (one) => messageCard(one, { wanted: state.wanted }) });
  const state = { wanted: [], shown: data.entries, list };
  const status = h("p", { class: "soft", role: "status", "aria-live": "polite", id: "found" });
  const query = h("input", { type: "search", id: "query", autocomplete: "off", spellcheck: "false", dir: "auto" });
  const who = choice("who", [["", "everybody"], ...Object.entries(WHO).filter(([role]) => has((one) => one.role === role))]);
  const track = choice("track", [["", "every track"], ...data.tracks.map((one) => [one, one])]);
  const only = choice("only", [["", "all"], ["pinned", "pinned"], ["revision", "edited"], ["kind", "with a kind"]]);
  const search = (again = false) => {
    state.wanted = wordsOf(query.value);
    const keep = (one) => (!who.value || one.role === who.value) && (!track.value || one.track === track.value)
      && (!only.value || one[only.value]);
    state.shown = matches(data.entries, state.wanted, keep);
    list.show(state.shown, again === true);
    const all = state.shown.length === data.entries.length;
    status.textContent = all ? `${plural(data.entries.length, "message")}.`
      : `${plural(state.shown.length, "message")} of ${count(data.entries.length)} found.`;
  };
  const go = h("input", { type: "number", id: "go", min: "1", inputmode: "numeric" });
  const jump = h("form", { class: "line", onsubmit: (event) => { event.preventDefault(); state.go(Number(go.value)); } },
    field("Go to №", go), h("button", null, "Go"));
  const form = h("form", { class: "line filters", role: "search", "aria-label": "Messages",
    onsubmit: (event) => event.preventDefault(), oninput: search },
    field("Search", query), field("From", who), data.tracks.length > 1 ? field("Track", track) : null,
    field("Only", only));
  state.go = (seq) => {
    if (state.shown.length !== data.entries.length) {
      form.reset();
      search();
    }
    const at = data.entries.findIndex((one) => one.seq >= seq);
    const there = at >= 0 && data.entries[at].seq === seq;
    if (!there) status.textContent = `There is no message № ${count(seq)}: it never existed, or it was forgotten.`;
    if (at >= 0) list.reveal(at);
  };
  // After the content changed: what is new comes behind, unless something in between is gone or is another.
  state.refresh = () => {
    const place = document.activeElement && document.activeElement.closest && document.activeElement.closest("[aria-posinset]");
    const at = place ? Number(place.getAttribute("aria-posinset")) - 1 : null;
    const top = window.scrollY;
    search(true);
    window.scrollTo(0, top);
    list.settle();
    if (at !== null) list.reveal(Math.min(at, state.shown.length - 1));
  };
  box.append(heading("Messages"), h("div", { class: "bar" }, form, jump), status, list.host);
  search();
  return { box, state, open: (seq) => state.go(Number(seq)) };
}

const has = (test) => data.entries.some(test);
const field = (label, input) => h("label", { class: "field" }, h("span", null, label), input);
const choice = (id, options) => h("select", { id }, options.map(([value, text]) => h("option", { value }, text)));
