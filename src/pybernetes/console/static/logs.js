// Logs of the containers of one pod, or of all pods that a workload selects, followed while the page is open.

import { json, lines, query, request } from "./api.js";
import { h, show } from "./dom.js";
import { find, path } from "./kinds.js";

const KEPT = 5000;
const COLOURS = ["#3f8efc", "#2ca25f", "#d9740d", "#a457d1", "#d13c6a", "#128c9c", "#8a8200", "#7a6cf0"];

export function selectorOf(object) {
  const spec = object.spec || {};
  const labels = object.kind === "Service" || object.kind === "ReplicationController" ? spec.selector : spec.selector?.matchLabels;
  const terms = Object.entries(labels || {}).map(([name, value]) => `${name}=${value}`);
  for (const { key, operator, values } of spec.selector?.matchExpressions || []) {
    terms.push({ In: `${key} in (${values})`, NotIn: `${key} notin (${values})`, Exists: key, DoesNotExist: `!${key}` }[operator]);
  }
  return terms.join(",");
}

export async function podsOf(object) {
  if (object.kind === "Pod") return [object];
  const selector = selectorOf(object);
  if (!selector) return [];
  return (await json(query(path(find("pods"), object.metadata.namespace), { labelSelector: selector, limit: 50 }))).items;
}

export const containersOf = (pod) => [...(pod.spec.initContainers || []), ...pod.spec.containers, ...(pod.spec.ephemeralContainers || [])].map((each) => each.name);

export async function logsTab(panel, object, signal) {
  const pods = await podsOf(object);
  const output = h("pre", { class: "code", tabindex: "0", role: "log", "aria-label": "Logs" });
  const names = [...new Set(pods.flatMap(containersOf))];
  const container = h("select", { "aria-label": "Container" }, h("option", { value: "" }, pods.length === 1 ? "All containers" : "All containers of all pods"), names.map((each) => h("option", null, each)));
  const previous = h("input", { type: "checkbox" }), times = h("input", { type: "checkbox" });
  const filter = h("input", { type: "search", placeholder: "Only lines with", "aria-label": "Only lines with" });
  show(panel, h("div", { class: "bar" }, container, h("label", null, previous, " previous"), h("label", null, times, " times"), filter), output);
  if (!pods.length) { show(output, "There are no pods."); return; }
  let running = new AbortController();
  signal.addEventListener("abort", () => running.abort());

  function write(prefix, colour, line) {
    const end = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
    const made = h("div", { hidden: !line.includes(filter.value) }, prefix && h("span", { style: { color: colour } }, `${prefix} `), line);
    made.dataset.line = line;
    output.append(made);
    while (output.childElementCount > KEPT) output.firstChild.remove();
    if (end) output.scrollTop = output.scrollHeight;
  }

  async function read(pod, name, index, stop) {
    const several = pods.length > 1 || names.length > 1;
    const prefix = several ? `[${pods.length > 1 ? `${pod.metadata.name}/` : ""}${name}]` : "";
    const parameters = { container: name, tailLines: 500, follow: !previous.checked, previous: previous.checked, timestamps: times.checked };
    try {
      const response = await request(query(`${path(find("pods"), pod.metadata.namespace, pod.metadata.name)}/log`, parameters), { signal: stop, headers: { Accept: "*/*" } });
      for await (const line of lines(response)) write(prefix, COLOURS[index % COLOURS.length], line);
    } catch (error) {
      if (!stop.aborted) write(prefix, COLOURS[index % COLOURS.length], `-- ${error.message}`);
    }
  }

  function start() {
    running.abort();
    running = new AbortController();
    show(output);
    pods.forEach((pod, index) => containersOf(pod).filter((each) => !container.value || each === container.value).forEach((each) => read(pod, each, index, running.signal)));
  }
  filter.addEventListener("input", () => { for (const each of output.children) each.hidden = !each.dataset.line.includes(filter.value); });
  for (const each of [container, previous, times]) each.addEventListener("change", start);
  start();
}
