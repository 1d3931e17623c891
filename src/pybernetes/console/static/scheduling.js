// What the scheduler knows of a pod: its attempts, and nodes x plugins with points or the reason of a refusal.

import { json, query } from "./api.js";
import { facts, h, rows, show } from "./dom.js";

export async function schedulingTab(panel, namespace, name) {
  show(panel, h("p", { class: "faint" }, "Asking"));
  let report;
  try { report = await json(query("/-/scheduling", { namespace, name })); } catch (error) { show(panel, h("p", { class: "faint" }, error.message)); return; }
  const { attempts = [], queue = {}, changes = [], nodes } = report, last = attempts.at(-1);
  show(panel,
    facts([["State", report.state], ["Node", report.nodeName], ["Queue", queue.where], ["Refused by", queue.refusedBy?.join(", ")], ["Next attempt at the latest", queue.nextAttempt], ["Note", report.message]]),
    attempts.length ? [h("h2", null, "Attempts"), rows(["Number", "Began", "Took", "Result", "Fit", "Message"], attempts.map((each) => [each.number, each.started, `${each.milliseconds} ms`, each.nodeName || each.result, each.feasible === undefined ? "" : `${each.feasible} of ${each.nodes}`, each.message]))] : null,
    last?.scores || last?.refused ? [h("h2", null, "Nodes and plugins, last attempt"), table(last)] : null,
    nodes?.refused?.length ? [h("h2", null, "Nodes and plugins, now"), table(nodes)] : null,
    changes.length ? [h("h2", null, "Any one of these would do"), h("ol", null, changes.map((each) => h("li", null, each.change)))] : null);
}

// One line a node: points of those that fit (times their weight), reasons of those that do not.
export function table({ scores = [], weights = {}, refused = [], nodeName }) {
  const scoring = Object.keys(weights), refusing = [...new Set(refused.map((each) => each.plugin))].filter((each) => !scoring.includes(each));
  const lines = scores.map((each) => [`${each.node}${each.node === nodeName ? " *" : ""}`, String(each.total), ...scoring.map((name) => String(each.plugins[name] ?? "")), ...refusing.map(() => "")]);
  const by = new Map();
  for (const group of refused) for (const node of group.nodes) by.set(node, [...(by.get(node) || []), group]);
  const said = (node, plugin) => by.get(node).filter((each) => each.plugin === plugin).map((each) => h("span", { class: "bad" }, each.reasons?.join(", ") || "refused"));
  for (const node of [...by.keys()].sort().slice(0, 500)) lines.push([node, "", ...[...scoring, ...refusing].map((plugin) => said(node, plugin))]);
  return rows(["Node", scores.length ? "Total" : "", ...scoring.map((name) => `${name} x${weights[name]}`), ...refusing], lines);
}
