// A long list of which only the beginning and what is near the screen is there: in pieces that are filled when they come
// near, and emptied, at the height that they had, when they are far.

const PIECE = 40;

class LongList {
  constructor({ label, make, guess = 110 }) {
    this.make = make;
    this.guess = guess;
    this.items = [];
    this.pieces = [];
    this.host = h("div", { class: "feed", role: "feed", "aria-label": label });
    this.watch = new IntersectionObserver((seen) => seen.forEach((one) => this.turn(one)), { rootMargin: "900px 0px" });
    this.host.addEventListener("keydown", (event) => this.walk(event));
  }

  // `again`: the same items, with others behind: pieces keep the heights that they had.
  show(items, again = false) {
    const heights = again ? this.pieces.map((one) => one.node.offsetHeight) : [];
    this.watch.disconnect();
    this.items = items;
    this.pieces = [];
    for (let from = 0; from < items.length; from += PIECE) {
      const node = h("div", { class: "piece" });
      node.style.height = `${heights[from / PIECE] || Math.min(PIECE, items.length - from) * this.guess}px`;
      this.pieces.push({ node, from, filled: false });
      node.piece = this.pieces[this.pieces.length - 1];
    }
    this.host.replaceChildren(...this.pieces.map((one) => one.node));
    if (this.pieces.length) this.put(this.pieces[0]);
    this.pieces.slice(1).forEach((one) => this.watch.observe(one.node));
  }

  // Fill what is on the screen now, before anybody sees that it is empty.
  settle() {
    for (const one of this.pieces) {
      const box = one.node.getBoundingClientRect();
      if (!one.filled && box.bottom > 0 && box.top < innerHeight) this.put(one);
    }
  }

  turn({ target, isIntersecting }) {
    const { piece } = target;
    if (isIntersecting && !piece.filled) this.put(piece);
    else if (!isIntersecting && piece.filled && !target.contains(document.activeElement) && target.offsetHeight) {
      target.style.height = `${target.offsetHeight}px`;
      target.replaceChildren();
      piece.filled = false;
    }
  }

  put(piece) {
    const shown = this.items.slice(piece.from, piece.from + PIECE).map((item, at) => {
      const node = this.make(item);
      node.setAttribute("aria-posinset", piece.from + at + 1);
      node.setAttribute("aria-setsize", this.items.length);
      node.tabIndex = -1;
      return node;
    });
    piece.node.replaceChildren(...shown);
    piece.node.style.height = "";
    piece.filled = true;
  }

  reveal(at) {
    const piece = this.pieces[Math.floor(at / PIECE)];
    if (!piece) return;
    if (!piece.filled) this.put(piece);
    const node = piece.node.children[at - piece.from];
    node.scrollIntoView({ block: "center" });
    // What is above gets its real height when it comes near: once more, when it has.
    requestAnimationFrame(() => requestAnimationFrame(() => node.scrollIntoView({ block: "center" })));
    node.classList.add("found");
    node.focus({ preventScroll: true });
  }

  // As in every feed: Page Down and Page Up go to the next item and to the one before.
  walk(event) {
    const step = { PageDown: 1, PageUp: -1 }[event.key];
    const here = event.target.closest("[aria-posinset]");
    if (!step || !here) return;
    event.preventDefault();
    const at = Number(here.getAttribute("aria-posinset")) - 1 + step;
    if (at >= 0 && at < this.items.length) this.reveal(at);
  }
}
