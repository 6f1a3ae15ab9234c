// The sections, the address bar, and the first drawing.

const SECTIONS = [
  ["overview", "Overview", overviewView],
  ["messages", "Messages", messagesView],
  ["summaries", "Summaries", treeView],
  ["facts", "Facts", factsView],
  ["calls", "What the model saw", callView],
  ["decisions", "Condensations", decisionsView],
  ["window", "Window", windowView],
  ["checkpoints", "Checkpoints", checkpointsView],
  ["files", "Files", filesView],
  ["cost", "Cost", costView],
];
const views = new Map();
let current = "";

function heading(text) {
  return h("h2", { tabindex: "-1" }, text);
}

// A section is drawn when it is first asked for, and kept.
function draw(name) {
  if (!views.has(name)) views.set(name, SECTIONS.find(([one]) => one === name)[2]());
  return views.get(name);
}

function route(first = false) {
  const [, asked, ...rest] = location.hash.split("/");
  const name = SECTIONS.some(([one]) => one === asked) ? asked : "overview";
  const view = draw(name);
  if (name !== current) {
    current = name;
    byId("main").replaceChildren(view.box);
    document.title = `${SECTIONS.find(([one]) => one === name)[1]} · ${data.about.session}`;
    for (const tab of document.querySelectorAll("#tabs a")) {
      if (tab.hash !== `#/${name}`) { tab.removeAttribute("aria-current"); continue; }
      tab.setAttribute("aria-current", "page");
      // Not scrollIntoView: the keyboard would begin at the tab, behind the link to the content.
      const box = byId("tabs");
      box.scrollLeft += tab.getBoundingClientRect().left - box.getBoundingClientRect().left - (box.clientWidth - tab.clientWidth) / 2;
    }
    if (!first) {
      window.scrollTo(0, 0);
      view.box.querySelector("h2").focus({ preventScroll: true });
    }
  }
  if (rest.length && view.open) view.open(decodeURIComponent(rest.join("/")));
}

// After the content changed: what is shown is drawn anew at its place; what is typed, and where the keyboard is, stays.
function redraw() {
  const reached = () => [...byId("main").querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")];
  const place = reached().indexOf(document.activeElement);
  const old = views.get(current);
  views.clear();
  if (current === "messages") {
    views.set(current, old);
    old.state.refresh();
  } else {
    const open = [...old.box.querySelectorAll("details[open][data-summary], details[open][data-outcome], details[open][data-checkpoint]")]
      .map((one) => one.dataset.summary || one.dataset.outcome || one.dataset.checkpoint);
    const top = window.scrollY;
    const view = draw(current);
    byId("main").replaceChildren(view.box);
    if (current === "calls" && old.at()) view.open(old.at());
    else if (view.open) open.forEach((id) => view.open(id));
    window.scrollTo(0, top);
  }
  if (place >= 0 && document.activeElement === document.body) (reached()[place] || byId("main")).focus({ preventScroll: true });
  lead();
}

function lead() {
  byId("lead").textContent = `${plural(data.metrics.messages, "message")}, ${plural(data.metrics.tokens, "token")}`
    + (data.tracks.length > 1 ? `, ${plural(data.tracks.length, "track")}` : "");
}

data = indexed(JSON.parse(byId("content").textContent));
mayChange = Boolean(data.may_change);
const { live, stamp } = data;
byId("tabs").append(...SECTIONS.map(([name, text]) => h("li", null, link(text, name))));
window.addEventListener("hashchange", () => route());
byId("dialog").addEventListener("close", (event) => {
  // What opened it may be gone by then, as a forgotten message is.
  const { activeElement } = document;
  if (activeElement === document.body || event.target.contains(activeElement)) byId("main").focus({ preventScroll: true });
});
document.addEventListener("click", (event) => {
  // A link to where one is already opens it once more.
  const target = event.target.closest && event.target.closest("a[href^='#/']");
  if (target && target.hash === location.hash) route();
});
route(true);
foldAhead(data.entries);
if (live) follow(stamp);
document.documentElement.dataset.ready = "yes";
