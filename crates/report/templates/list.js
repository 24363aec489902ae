// A list of any length: only the rows in sight are in the page. It is a grid for assistive technology, with the number
// of all rows, and one row that the keyboard is at.

const ROW = 20;

class List {
  /// `columns` are the headings; `cells(row, node)` fills a row's element; `pick(row, how)` is told what was chosen.
  constructor(box, { label, columns, cells, pick, skip = () => false }) {
    this.n = 0;
    this.at = -1;
    this.cells = cells;
    this.pick = pick;
    this.skip = skip;
    this.rows = new Map();
    this.id = box.id;
    this.view = el("div", { class: "list", role: "grid", tabindex: 0, "aria-label": label, "aria-colcount": columns.length });
    const head = el("div", { class: "row head", role: "row", "aria-rowindex": 1 });
    columns.forEach(([name, num]) => head.append(el("span", { role: "columnheader", class: num ? "num" : null }, name)));
    this.space = el("div", { class: "space", role: "rowgroup" });
    this.head = head;
    this.view.append(head, this.space);
    box.append(this.view);
    let asked = false;
    const later = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        this.draw();
      });
    };
    this.view.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(this.view);
    this.view.addEventListener("keydown", e => this.key(e));
    this.view.addEventListener("click", e => {
      const row = e.target.closest("[data-row]");
      if (row) this.go(Number(row.dataset.row), "click");
    });
  }

  /// Shows `n` rows; `width` is the least width of a row as CSS has it.
  show(n, width) {
    this.n = n;
    this.at = Math.min(this.at, n - 1);
    this.view.setAttribute("aria-rowcount", n + 1);
    this.space.style.height = `${n * ROW}px`;
    this.space.style.width = this.head.style.width = width || "";
    this.redraw();
  }

  redraw() {
    this.rows.forEach(node => node.remove());
    this.rows.clear();
    this.draw();
  }

  draw() {
    const top = this.view.scrollTop, height = this.view.clientHeight;
    const first = Math.max(0, Math.floor(top / ROW) - 12), last = Math.min(this.n, Math.ceil((top + height) / ROW) + 12);
    for (const [row, node] of this.rows) {
      if ((row < first || row >= last) && row !== this.at) {
        node.remove();
        this.rows.delete(row);
      }
    }
    for (let row = first; row < last; row++) this.node(row);
  }

  /// The element of a row, made if there is none.
  node(row) {
    let node = this.rows.get(row);
    if (!node && row >= 0 && row < this.n) {
      node = el("div", { class: "row", role: "row", id: `${this.id}-${row}`, "data-row": row, "aria-rowindex": row + 2 });
      node.style.top = `${row * ROW}px`;
      this.cells(row, node);
      node.querySelectorAll(":scope > *").forEach(cell => cell.setAttribute("role", "gridcell"));
      this.rows.set(row, node);
      if (row === this.at) this.mark(node, true);
      this.space.append(node);
    }
    return node;
  }

  mark(node, on) {
    node.classList.toggle("at", on);
    node.setAttribute("aria-selected", on);
  }

  /// Makes `row` the one the keyboard is at.
  set(row, { centre = false } = {}) {
    const before = this.rows.get(this.at);
    if (before) this.mark(before, false);
    this.at = row;
    if (row < 0) return;
    this.reveal(row, centre);
    const node = this.node(row);
    if (!node) return;
    this.mark(node, true);
    this.view.setAttribute("aria-activedescendant", node.id);
  }

  /// Scrolls so that `row` is in sight.
  reveal(row, centre = false) {
    const top = row * ROW, room = this.view.clientHeight - ROW - 4;
    const seen = top >= this.view.scrollTop && top + ROW <= this.view.scrollTop + room;
    if (seen) return;
    const above = top < this.view.scrollTop;
    this.view.scrollTop = centre ? top - room / 2 : above ? top : top + ROW - room;
    this.draw();
  }

  go(row, how) {
    this.set(row);
    this.pick(row, how);
  }

  key(e) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    let to;
    if (step) to = this.at < 0 ? 0 : this.at + step;
    else if (e.key === "Home") to = 0;
    else if (e.key === "End") to = this.n - 1;
    else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      if (this.at >= 0) this.pick(this.at, "enter");
      return;
    } else return;
    e.preventDefault();
    to = Math.min(this.n - 1, Math.max(0, to));
    while (this.skip(to) && to > 0 && to < this.n - 1) to += to >= this.at ? 1 : -1;
    if (this.n) this.go(to, "move");
  }
}
