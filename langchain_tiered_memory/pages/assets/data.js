// The content, and what is looked up in it.

let data;
let mayChange = false;

const FINISHED = new Set(["active", "superseded", "archived"]);

function indexed(raw) {
  const found = { ...raw, bySeq: new Map(), byId: new Map(), summary: new Map(), below: new Map(), under: new Map(), chains: new Map() };
  found.entries = [];
  take(found, raw.entries);
  for (const one of raw.summaries) found.summary.set(one.id, one);
  for (const one of raw.summaries) if (one.parent_id && FINISHED.has(one.state)) push(found.below, one.parent_id, one);
  found.fact = new Map(raw.facts.map((one) => [one.id, one]));
  found.replaced = new Map();
  for (const one of raw.facts) if (one.superseded_by) push(found.replaced, one.superseded_by, one);
  return found;
}

function take(found, { columns, rows }) {
  for (const row of rows) {
    const entry = {};
    columns.forEach((name, at) => { entry[name] = row[at]; });
    found.entries.push(entry);
    found.bySeq.set(entry.seq, entry);
    push(found.byId, entry.id, entry);
    if (entry.summary) push(found.under, entry.summary, entry);
  }
}

function push(map, key, value) {
  const there = map.get(key);
  if (there) there.push(value);
  else map.set(key, [value]);
}

const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function fold(entry) {
  if (entry.folded === undefined) entry.folded = folded(`${entry.name || ""} ${entry.text}`);
  return entry.folded;
}

// Folding is done in pauses, so that the first search finds it done.
function foldAhead(entries, from = 0) {
  const idle = window.requestIdleCallback || ((call) => setTimeout(() => call({ timeRemaining: () => 8 }), 30));
  idle((left) => {
    let at = from;
    while (at < entries.length && left.timeRemaining() > 1) fold(entries[at++]);
    if (at < entries.length) foldAhead(entries, at);
  });
}

const wordsOf = (query) => folded(query).split(/\s+/).filter(Boolean);

function matches(entries, wanted, keep) {
  return entries.filter((one) => keep(one) && wanted.every((word) => fold(one).includes(word)));
}

// From a message up: every summary that stands for it.
function chain(entry) {
  const known = data.chains.get(entry.summary);
  if (known) return known;
  const ids = [];
  for (let id = entry.summary; id && data.summary.has(id) && !ids.includes(id); id = data.summary.get(id).parent_id) {
    ids.push(id);
  }
  data.chains.set(entry.summary, ids);
  return ids;
}

function roots() {
  return data.summaries
    .filter((one) => one.state === "active" || one.state === "archived")
    .sort((one, other) => one.first_seq - other.first_seq || one.last_seq - other.last_seq);
}

const calls = (track) => data.entries.filter((one) => one.role === "assistant" && one.track === track);
