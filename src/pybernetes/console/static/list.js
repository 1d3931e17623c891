// A live list of one kind: the server's Table, kept by uid, sorted and filtered, of which only the visible rows are in the page.

import { TABLE, follow } from "./api.js";
import { age, h, mood, notice, show } from "./dom.js";
import { listPage, objectPage, path } from "./kinds.js";

const ROW = 26;
const SPARE = 8;

// Rows of a Table by uid; what is shown is a sorted, filtered copy that is made at most once a frame.
class Rows {
  constructor() { this.clear(); this.filter = ""; this.sort = null; this.down = false; }
  clear() { this.byUid = new Map(); this.columns = []; this.created = -1; this.stale = true; this.shown = []; }

  take(table) {
    if (table.columnDefinitions?.length) {
      this.columns = table.columnDefinitions.map((each, index) => ({ ...each, index }));
      this.created = this.columns.findIndex((each) => each.name === "Age");
    }
    for (const row of table.rows || []) {
      const { uid, name, namespace, creationTimestamp, labels } = row.object.metadata;
      if (this.created >= 0) row.cells[this.created] = creationTimestamp;
      const before = this.byUid.get(uid);
      this.byUid.set(uid, { uid, name, namespace: namespace || "", cells: row.cells, labels, changed: before ? before.changed : 0, text: "" });
    }
    this.stale = true;
  }

  apply(type, table, now) {
    if (type !== "DELETED") this.take(table);
    for (const row of table.rows || []) {
      if (type === "DELETED") this.byUid.delete(row.object.metadata.uid);
      else this.byUid.get(row.object.metadata.uid).changed = now;
    }
    this.stale = true;
  }

  visible() {
    if (!this.stale) return this.shown;
    this.stale = false;
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    let rows = [...this.byUid.values()];
    if (words.length) rows = rows.filter((row) => { const text = textOf(row); return words.every((word) => word[0] === "!" ? !text.includes(word.slice(1)) : text.includes(word)); });
    const key = this.sort === null ? null : this.sort === -1 ? (row) => row.namespace : (row) => row.cells[this.sort];
    if (key) {
      const order = new Intl.Collator(undefined, { numeric: true }).compare;
      rows.sort((a, b) => { const [x, y] = [key(a), key(b)]; return typeof x === "number" && typeof y === "number" ? x - y : order(String(x), String(y)); });
      if (this.down) rows.reverse();
    }
    this.shown = rows;
    return rows;
  }
}

function textOf(row) {
  if (!row.text) row.text = [row.namespace, ...row.cells, ...Object.entries(row.labels || {}).map(([name, value]) => `${name}=${value}`)].join(" ").toLowerCase();
  return row.text;
}

export function list(main, kind, { namespace, filter = "", signal }) {
  const rows = new Rows();
  rows.filter = filter;
  const heading = h("h1", null, kind.kind);
  const count = h("span", { class: "count", role: "status" }, "Loading");
  const search = h("input", { type: "search", id: "filter", placeholder: "Filter ( / )", "aria-label": `Filter ${kind.resource}`, value: filter });
  const wide = h("input", { type: "checkbox" });
  const head = h("div", { class: "head", role: "row", "aria-rowindex": "1" });
  const body = h("div", { role: "rowgroup" });
  const grid = h("div", { class: "grid", role: "grid", "aria-label": `List of ${kind.resource}`, tabindex: "0" }, head, body);
  show(main, heading, h("div", { class: "bar" }, search, count, h("span", { class: "space" }), h("label", null, wide, " All columns")), grid);

  let selected = 0, complete = false, frame = 0, template = "";
  const withNamespace = kind.namespaced && !namespace;
  const columns = () => rows.columns.filter((each) => wide.checked || !each.priority);

  const schedule = () => { frame ||= requestAnimationFrame(draw); };

  function drawHead() {
    const named = [...(withNamespace ? [{ name: "Namespace", index: -1 }] : []), ...columns()];
    template = named.map((each) => each.index === -1 ? "minmax(110px,1fr)" : each.name === "Name" ? "minmax(180px,2.4fr)" : "minmax(70px,1fr)").join(" ");
    head.style.gridTemplateColumns = template;
    show(head, named.map((each) => h("div", { class: "cell", role: "columnheader", "aria-sort": rows.sort === each.index ? (rows.down ? "descending" : "ascending") : "none" },
      h("button", { type: "button", title: each.description || "", onclick: () => { rows.down = rows.sort === each.index && !rows.down; rows.sort = each.index; rows.stale = true; drawHead(); schedule(); } },
        each.name, rows.sort === each.index ? (rows.down ? " ▾" : " ▴") : ""))));
  }

  function draw() {
    frame = 0;
    const visible = rows.visible(), now = Date.now();
    selected = Math.min(selected, Math.max(visible.length - 1, 0));
    body.style.height = `${visible.length * ROW}px`;
    grid.setAttribute("aria-rowcount", visible.length + 1);
    const from = Math.max(0, Math.floor(grid.scrollTop / ROW) - SPARE), to = Math.min(visible.length, from + Math.ceil(grid.clientHeight / ROW) + 2 * SPARE);
    const cells = columns();
    show(body, visible.slice(from, to).map((row, offset) => {
      const index = from + offset;
      const line = h("div", { class: `row${index === selected ? " selected" : ""}${now - row.changed < 1500 ? " fresh" : ""}`, role: "row", "aria-rowindex": String(index + 2),
        "aria-selected": String(index === selected), onclick: () => { selected = index; openRow(); } },
        withNamespace && h("div", { class: "cell faint", role: "gridcell" }, row.namespace),
        cells.map((each) => cell(each, row)));
      line.style.top = `${index * ROW + ROW}px`;
      line.style.gridTemplateColumns = template;
      return line;
    }));
    count.textContent = `${visible.length.toLocaleString()}${visible.length === rows.byUid.size ? "" : ` of ${rows.byUid.size.toLocaleString()}`}${complete ? "" : " so far"}`;
  }

  function cell(column, row) {
    const value = row.cells[column.index];
    if (column.name === "Name") return h("div", { class: "cell", role: "gridcell" }, h("a", { href: objectPage(kind, row.namespace, row.name), tabindex: "-1" }, row.name));
    const text = column.index === rows.created ? age(value) : String(value ?? "");
    const ready = column.name === "Ready" && /^(\d+)\/(\d+)$/.exec(text);
    return h("div", { class: `cell ${ready ? (ready[1] === ready[2] ? "" : "warn") : mood(text)}`, role: "gridcell", title: text.length > 12 ? text : undefined }, text);
  }

  function openRow() {
    const row = rows.visible()[selected];
    if (row) location.hash = objectPage(kind, row.namespace, row.name);
  }

  function move(step) {
    selected = Math.max(0, Math.min(rows.visible().length - 1, selected + step));
    const top = selected * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + 2 * ROW > grid.scrollTop + grid.clientHeight) grid.scrollTop = top + 2 * ROW - grid.clientHeight;
    schedule();
  }

  grid.addEventListener("scroll", schedule, { passive: true });
  wide.addEventListener("change", () => { drawHead(); schedule(); });
  search.addEventListener("input", () => { rows.filter = search.value; rows.stale = true; selected = 0; grid.scrollTop = 0; history.replaceState(null, "", search.value ? `${listPage(kind)}/${encodeURIComponent(search.value)}` : listPage(kind)); schedule(); });
  const resized = new ResizeObserver(schedule);
  resized.observe(grid);
  const ticking = setInterval(schedule, 5000);
  signal.addEventListener("abort", () => { resized.disconnect(); clearInterval(ticking); cancelAnimationFrame(frame); });

  follow(path(kind, namespace), { includeObject: "Metadata" }, TABLE, {
    page(table, first) { if (first) { rows.clear(); complete = false; } rows.take(table); if (first) drawHead(); schedule(); },
    listed() { complete = true; schedule(); },
    event(type, table) { rows.apply(type, table, Date.now()); schedule(); },
  }, signal).catch((error) => { count.textContent = ""; show(body, h("p", { class: "bad", role: "alert" }, error.message)); notice(error.message); });

  return {
    key(event) {
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9, g: -1e9, G: 1e9 }[event.key];
      const row = rows.visible()[selected];
      const tab = { y: "yaml", e: "events", r: "relations", w: "why", t: "trace", l: "logs", s: "shell" }[event.key];
      if (event.key === "/") search.focus();
      else if (step) move(step);
      else if (event.key === "Enter") openRow();
      else if (tab && row) location.hash = objectPage(kind, row.namespace, row.name, tab);
      else return false;
      return true;
    },
  };
}
