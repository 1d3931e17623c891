// The causal trace of an object as a waterfall: who caused what, when, for how long; the critical path is marked.

import { json, query } from "./api.js";
import { h, show } from "./dom.js";

export async function traceTab(panel, kind, namespace, name) {
  show(panel, h("p", { class: "faint" }, "Asking"));
  let answer;
  try {
    answer = await json(query("/-/trace", { resource: kind.id, namespace, name }));
  } catch (error) {
    show(panel, h("p", { class: "faint" }, error.message));
    return;
  }
  waterfall(panel, answer.spans);
}

// The whole cluster: what happened lately, or how it started.
export async function tracePage(main, which) {
  const start = which === "start", panel = h("div"), link = (to, text, on) => h("a", { href: to, class: "chip", "aria-current": on ? "page" : undefined }, text);
  show(main, h("h1", null, "Trace"), h("div", { class: "bar" }, link("#/trace", "The last ten minutes", !start), link("#/trace/start", "The start of the cluster", start)), panel);
  try {
    const { spans, leftOut } = await json(query("/-/trace", start ? { first: 30 } : { since: 600 }));
    waterfall(panel, spans);
    if (leftOut) panel.prepend(h("p", { class: "faint" }, `${leftOut} further traces are not shown; \`pyb trace --since 10m\` has all.`));
  } catch (error) { show(panel, h("p", { class: "faint" }, error.message)); }
  return { key: () => false };
}

// Spans have id, parent, name, start and end in milliseconds, critical.
export function waterfall(panel, spans) {
  if (!spans.length) { show(panel, h("p", { class: "faint" }, "No spans of this object are kept.")); return; }
  const children = new Map();
  const known = new Set(spans.map((each) => each.id));
  for (const each of spans) { const parent = known.has(each.parent) ? each.parent : ""; children.set(parent, [...(children.get(parent) || []), each]); }
  const first = Math.min(...spans.map((each) => each.start)), last = Math.max(...spans.map((each) => each.end));
  let from = first, to = Math.max(last, first + 1);
  const body = h("div", { class: "waterfall" });
  const draw = () => {
    const lines = [];
    const add = (span, depth) => {
      const marks = (span.marks || []).map((each) => `\n+${(each.at - span.start).toFixed(1)} ms ${each.name} ${each.text}`).join("");
      const bar = h("i", { class: span.error ? "failed" : span.critical ? "critical" : "", title: `${span.name}: ${(span.end - span.start).toFixed(2)} ms${span.error ? `\n${span.error}` : ""}${marks}` });
      bar.style.left = `${(((span.start - from) / (to - from)) * 100).toFixed(3)}%`;
      bar.style.width = `${Math.max(0.1, ((span.end - span.start) / (to - from)) * 100).toFixed(3)}%`;
      const label = h("div", { class: "label", title: span.name }, `${span.component ? `${span.component}: ` : ""}${span.name} `, h("span", { class: "faint" }, `${(span.end - span.start).toFixed(1)} ms`));
      label.style.paddingLeft = `${depth * 12}px`;
      lines.push(label, h("div", { class: "span" }, bar));
      for (const each of (children.get(span.id) || []).sort((a, b) => a.start - b.start)) add(each, depth + 1);
    };
    for (const each of (children.get("") || []).sort((a, b) => a.start - b.start)) add(each, 0);
    show(body, lines);
  };
  const zoom = (factor) => { const middle = (from + to) / 2, half = ((to - from) / 2) * factor; from = Math.max(first, middle - half); to = Math.min(Math.max(last, first + 1), middle + half); draw(); };
  show(panel, h("div", { class: "bar" }, h("button", { type: "button", onclick: () => zoom(0.5) }, "Zoom in"), h("button", { type: "button", onclick: () => zoom(2) }, "Zoom out"),
    h("span", { class: "faint" }, `${spans.length} spans, ${(last - first).toFixed(1)} ms; the critical path is marked`)), body);
  draw();
}
