// A page that `serve` shows: it follows what is written, and asks for what a person wants done.

const session = () => encodeURIComponent(data.about.session);

function liveTools(entry) {
  return [
    button(entry.pinned ? "Unpin" : "Pin", () => act({ verb: entry.pinned ? "unpin" : "pin", message: entry.id, track: entry.track },
      entry.pinned ? "Unpinned." : "Pinned: every context shows it from now on."), { class: "quiet" }),
    button("Forget …", () => confirmForget(entry), { class: "quiet danger" }),
  ];
}

const liveUndo = (one) => h("p", null, button("Undo this condensation", () => ask("Undo this condensation?",
  ["The view shows again what it showed before. The summaries stay. Only the last condensation of a view can be undone."],
  "Undo", () => act({ verb: "undo", outcome: one.id }, "Undone."))));

function liveRating(one) {
  const rated = (verdict, note) => act({ verb: "rate", summary: one.id, verdict, note }, "Noted.");
  const asked = (verdict, question) => button(`${verdict[0].toUpperCase()}${verdict.slice(1)} …`, () => {
    const note = h("textarea", { rows: 4, maxlength: 600, "aria-label": question });
    ask(question, ["The summary will be rewritten: at once if rules wrote it, or when a program with the model next opens the session.", note], "Make it again", () => rated(verdict, note.value));
  }, { class: "quiet" });
  return h("p", { class: "line" }, h("span", { class: "soft" }, "This summary is"), button("Good", () => rated("good", ""), { class: "quiet" }),
    asked("wrong", "What is right?"), asked("incomplete", "What is missing?"));
}

function confirmForget(entry) {
  ask(`Forget message № ${count(entry.seq)}?`, [
    "This removes it for good, with every summary, fact, vector and index row made from it. It cannot be undone.",
    prose(entry.text.slice(0, 300)),
  ], "Forget it", () => act({ verb: "forget", message: entry.id, track: entry.track }, "Forgotten."));
}

function ask(title, parts, yes, onyes) {
  // Once is enough: while it is done, the button waits.
  const agreed = button(yes, () => { agreed.disabled = true; onyes(); }, { class: "danger strong" });
  openDialog(title, parts.map((one) => (typeof one === "string" ? h("p", null, one) : one)), "Cancel", agreed);
}

function tell(title, parts) {
  openDialog(title, parts, "Close");
}

// A dialog that is open already, with a question that was answered, says what came of it.
function openDialog(title, parts, leave, ...buttons) {
  const dialog = byId("dialog");
  const leaves = button(leave, () => dialog.close());
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), ...parts, h("div", { class: "line buttons" }, leaves, ...buttons));
  if (!dialog.open) dialog.showModal();
  leaves.focus();
}

async function act(wanted, done) {
  const answer = await fetch("act", { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ session: data.about.session, ...wanted }) }).catch(() => null);
  if (!answer) { tell("It could not be done", [h("p", null, "The server does not answer: is it still running?")]); return; }
  const told = await answer.json();
  if (!answer.ok) { tell("It could not be done", [h("p", null, words(told.error))]); return; }
  if (told.receipt) tell("Receipt", receipt(told.receipt));
  else if (byId("dialog").open) byId("dialog").close();
  try {
    await anew();
    byId("live").textContent = done;
  } catch (error) { byId("live").textContent = error.message; }
}

function receipt(one) {
  return [terms([
    ["Messages", count(one.entries)], ["Earlier wordings", count(one.revisions)], ["Summaries", count(one.summaries)],
    ["Facts", count(one.facts)], ["Index rows", count(one.passages)], ["Vectors", count(one.vectors)], ["When", time(one.at)],
  ]), one.may_remain.length ? h("div", null, h("p", null, "Bytes of it may remain in:"), h("ul", null, one.may_remain.map((place) => h("li", null, words(place)))))
    : h("p", null, "Nothing of it remains in this memory's data.")];
}

async function get(after) {
  const answer = await fetch(`data?id=${session()}&after=${after}`);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// All of it again: after something was changed in what is shown already.
async function anew() {
  const fresh = await get(0);
  data = indexed(fresh);
  redraw();
}

// What came since, and everything that is made from messages: summaries, facts, decisions. All of it, where what was there
// before is not the same any more.
async function goOn() {
  const had = data.entries.length;
  const fresh = await get(had ? data.entries[had - 1].seq : 0);
  const { columns } = fresh.entries;
  const rows = [...data.entries.map((one) => columns.map((name) => one[name])), ...fresh.entries.rows];
  const summaries = new Set(fresh.summaries.map((one) => one.id));
  const place = columns.indexOf("summary");
  if (rows.length !== fresh.metrics.messages || rows.some((row) => row[place] && !summaries.has(row[place]))) await anew();
  else {
    data = indexed({ ...fresh, entries: { columns, rows }, revisions: { ...data.revisions, ...fresh.revisions } });
    redraw();
  }
  const more = data.entries.length - had;
  if (more > 0) byId("live").textContent = `${plural(more, "new message")}.`;
}

function follow(stamp) {
  const source = new EventSource(`events?id=${session()}&stamp=${stamp}`);
  let busy = false;
  let again = false;
  const catchUp = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do { again = false; await goOn(); } while (again);
    } catch (error) { byId("live").textContent = `New messages could not be read: ${error.message}`; }
    busy = false;
  };
  source.addEventListener("open", () => { byId("live").textContent = "Live: new messages appear automatically."; });
  source.addEventListener("changed", catchUp);
  source.addEventListener("error", () => { byId("live").textContent = "The server does not answer. This page shows its last state."; });
}
