// Elements, figures and texts. Whatever a message says becomes a text node, never markup.

const byId = (id) => document.getElementById(id);

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attributes, children);
  return node;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
}

const count = (number) => Math.round(number).toLocaleString("en");
const share = (part) => `${Math.round(part * 100)} %`;
const money = (amount) => amount.toLocaleString("en", { maximumFractionDigits: 4 });
const short = (id) => id.slice(0, 8);

function named(number, noun) {
  return number === 1 ? noun : `${noun.replace(/y$/, "ie")}s`;
}

function plural(number, noun) {
  return `${count(number)} ${named(number, noun)}`;
}

function span(first, last) {
  return first === last ? `message ${count(first)}` : `messages ${count(first)} to ${count(last)}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });

function when(seconds) {
  if (seconds === null || seconds === undefined || !(Math.abs(seconds) < 8.64e12)) return "at an unknown time";
  return clock.format(new Date(seconds * 1000));
}

function time(seconds) {
  const known = Math.abs(seconds) < 8.64e12;
  return h("time", { datetime: known ? new Date(seconds * 1000).toISOString() : null }, when(seconds));
}

function bytes(number) {
  for (const [unit, size] of [["MB", 1e6], ["kB", 1e3]]) {
    if (number >= size) return `${(number / size).toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
  }
  return `${count(number)} bytes`;
}

// Characters that turn the order of a line round, or that a screen hides, are shown by their numbers.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function plainParts(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    parts.push(text.slice(from, found.index));
    const code = found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(h("span", { class: "hidden-character", title: "a character that is not shown as itself" }, `U+${code}`));
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

function words(text, wanted) {
  if (!wanted || !wanted.length) return plainParts(text);
  const low = text.toLowerCase();
  if (low.length !== text.length) return plainParts(text);
  const marks = [];
  for (const word of wanted) {
    for (let at = low.indexOf(word); at >= 0 && marks.length < 500; at = low.indexOf(word, at + word.length)) {
      marks.push([at, at + word.length]);
    }
  }
  marks.sort((one, other) => one[0] - other[0]);
  const parts = [];
  let from = 0;
  for (const [start, stop] of marks) {
    if (start < from) continue;
    parts.push(plainParts(text.slice(from, start)), h("mark", null, plainParts(text.slice(start, stop))));
    from = stop;
  }
  parts.push(plainParts(text.slice(from)));
  return parts;
}

const prose = (text, wanted) => h("div", { class: "said", dir: "auto" }, words(text, wanted));
const badge = (text, kind) => h("span", { class: `badge ${kind || ""}` }, text);
const note = (...parts) => h("p", { class: "note" }, ...parts);
const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);

function link(text, route, attributes) {
  return h("a", { href: `#/${route}`, ...attributes }, text);
}

const messageLink = (seq, text) => link(text || `№ ${count(seq)}`, `messages/${seq}`);
const summaryLink = (id, text) => link(text || short(id), `summaries/${id}`);

function later(title, build, attributes) {
  const box = h("details", attributes, h("summary", null, title));
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(...[build()].flat());
  });
  return box;
}

function table(caption, columns, rows) {
  const numeric = columns.map((name) => name.startsWith("#"));
  const heads = columns.map((name, at) =>
    h("th", { scope: "col", class: numeric[at] ? "number" : null }, name.replace(/^#/, "")));
  const body = rows.map((row) =>
    h("tr", null, row.map((cell, at) => h("td", { class: numeric[at] ? "number" : null }, cell))));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", null, h("caption", null, caption), h("thead", null, h("tr", null, heads)), h("tbody", null, body)));
}

function terms(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "terms" }, shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}
