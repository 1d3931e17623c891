// The start page: nodes with their pods, what needs attention, Services with their endpoints; and the page of metrics.

import { json, query, text } from "./api.js";
import { age, h, mood, rows, show, sparkline } from "./dom.js";
import { find, listPage, objectPage, path } from "./kinds.js";

const POD = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

export async function overview(main, signal) {
  const box = h("div");
  show(main, h("h1", null, "Cluster"), box);
  const draw = async () => {
    const [nodes, pods, services, slices, warnings] = await Promise.all([
      json(path(find("nodes")), { signal }), json(query(path(find("pods")), { limit: 2000 }), { signal, headers: { Accept: POD } }), json(query(path(find("services")), { limit: 500 }), { signal }),
      json(query(path(find("endpointslices.discovery.k8s.io")), { limit: 1000 }), { signal }), json(query(path(find("events")), { fieldSelector: "type=Warning", limit: 300 }), { signal })]);
    const names = pods.columnDefinitions.map((each) => each.name), at = (row, name) => String(row.cells[names.indexOf(name)] ?? "");
    const dots = (list) => h("div", { class: "dots" }, list.map((row) => { const state = at(row, "Status"), how = mood(state), [ready, all] = at(row, "Ready").split("/"); const class_ = how === "bad" ? "bad" : how === "warn" || (state === "Running" && ready !== all) ? "warn" : "";
      const { namespace, name } = row.object.metadata; return h("a", { class: `dot ${class_}`, href: objectPage(find("pods"), namespace, name), title: `${namespace}/${name}: ${state}`, "aria-label": `${namespace}/${name}: ${state}` }); }));
    const byNode = Map.groupBy ? Map.groupBy(pods.rows || [], (row) => at(row, "Node")) : new Map();
    const unplaced = (pods.rows || []).filter((row) => ["", "<none>"].includes(at(row, "Node")));
    const more = pods.metadata.continue ? h("p", { class: "faint" }, "The first 2,000 pods are shown.") : null;
    const endpoints = new Map();
    for (const slice of slices.items) { const key = `${slice.metadata.namespace}/${slice.metadata.labels?.["kubernetes.io/service-name"]}`; const [ready, all] = endpoints.get(key) || [0, 0]; endpoints.set(key, [ready + (slice.endpoints || []).filter((each) => each.conditions?.ready !== false).length, all + (slice.endpoints || []).length]); }
    const when = (each) => each.lastTimestamp || each.eventTime || each.metadata.creationTimestamp;
    const recent = warnings.items.sort((a, b) => Date.parse(when(b)) - Date.parse(when(a))).slice(0, 12);
    show(box, h("h2", null, "Nodes and their pods"), h("div", { class: "cards" }, nodes.items.map((node) => {
      const ready = node.status?.conditions?.find((each) => each.type === "Ready")?.status === "True";
      return h("section", { class: "card" }, h("h3", null, h("a", { href: objectPage(find("nodes"), "", node.metadata.name) }, node.metadata.name), " ", h("span", { class: ready ? "good" : "bad" }, ready ? "Ready" : "NotReady"), node.spec.unschedulable ? h("span", { class: "warn" }, " cordoned") : null), dots(byNode.get(node.metadata.name) || []));
    }), unplaced.length ? h("section", { class: "card" }, h("h3", null, `Without a node: ${unplaced.length}`), dots(unplaced)) : null), more,
    h("h2", null, "Services"), services.items.length ? rows(["Namespace", "Name", "Type", "Endpoints"], services.items.map((each) => {
      const [ready, all] = endpoints.get(`${each.metadata.namespace}/${each.metadata.name}`) || [0, 0];
      return [each.metadata.namespace, h("a", { href: objectPage(find("services"), each.metadata.namespace, each.metadata.name) }, each.metadata.name), each.spec.type, h("span", { class: ready || each.spec.type === "ExternalName" ? (ready < all ? "warn" : "") : "bad" }, `${ready} ready of ${all}`)];
    })) : "None",
    h("h2", null, "Recent warnings"), recent.length ? rows(["Last", "Object", "Reason", "Message"], recent.map((each) => { const kind = find(each.involvedObject.kind), label = `${each.involvedObject.kind} ${each.involvedObject.name}`; return [age(when(each)), kind ? h("a", { href: objectPage(kind, each.involvedObject.namespace, each.involvedObject.name, "events") }, label) : label, each.reason, each.message]; })) : "None");
  };
  await draw();
  const timer = setInterval(() => draw().catch(() => {}), 5000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return { key: () => false };
}

// The sums of the named families in Prometheus' text format, by the labels that `by` names.
export function sums(exposition, family, by) {
  const found = new Map();
  for (const line of exposition.split("\n")) {
    if (!line.startsWith(family) || !/[{ ]/.test(line[family.length] || "")) continue;
    const labels = Object.fromEntries([...line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
    const key = labels[by] || "", value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (Number.isFinite(value)) found.set(key, (found.get(key) || 0) + value);
  }
  return found;
}

const OTHERS = ["scheduler", "controller-manager"]; // reached where they run on this machine

export async function metrics(main, signal) {
  const body = h("div"), nodes = (await json(path(find("nodes")), { signal })).items;
  const sources = [["API server", "/-/metrics"], ...nodes.map((each) => [`kubelet of ${each.metadata.name}`, `/api/v1/nodes/${each.metadata.name}/proxy/metrics`])];
  const past = new Map(), totals = new Map();
  show(main, h("h1", null, "Metrics"), h("p", { class: "faint" }, "Prometheus endpoints: ", sources.map(([name, url]) => h("span", { class: "chip" }, `${name}: ${url === "/-/metrics" ? "/metrics" : url}`)), OTHERS.map((name) => h("span", { class: "chip" }, `${name}: /metrics`))), body);
  const push = (name, value) => { const list = past.get(name) || []; list.push(value); if (list.length > 90) list.shift(); past.set(name, list); };
  const rate = (name, value, now) => { const before = totals.get(name); totals.set(name, [value, now]); if (before) push(name, Math.max(0, ((value - before[0]) * 1000) / (now - before[1]))); };
  const draw = async () => {
    const now = Date.now(), server = await text("/-/metrics", { signal });
    for (const [verb, value] of sums(server, "apiserver_request_total", "verb")) rate(`${verb} requests/s`, value, now);
    const [count, sum] = ["count", "sum"].map((each) => [...sums(server, `apiserver_request_duration_seconds_${each}`, "none").values()][0] || 0);
    const earlier = totals.get("latency"); totals.set("latency", [sum, count]);
    if (earlier && count > earlier[1]) push("mean request ms", ((sum - earlier[0]) / (count - earlier[1])) * 1000);
    push("requests in flight", [...sums(server, "apiserver_current_inflight_requests", "none").values()][0] || 0);
    push("API server memory MiB", ([...sums(server, "process_resident_memory_bytes", "none").values()][0] || 0) / 1048576);
    const pods = await Promise.all(OTHERS.map(async (name) => { try { return (await json(`/-/components?name=${name}`, { signal })).text; } catch { return ""; } }));
    const mean = (found, family, name) => {
      const [total, many] = ["sum", "count"].map((each) => [...sums(found, `${family}_${each}`, "none").values()][0] || 0), old = totals.get(name);
      totals.set(name, [total, many]);
      if (old && many > old[1]) push(name, ((total - old[0]) / (many - old[1])) * 1000);
    };
    mean(pods[0], "scheduler_scheduling_attempt_duration_seconds", "mean scheduling attempt ms");
    for (const [queue, value] of sums(pods[0], "scheduler_pending_pods", "queue")) push(`scheduler queue: ${queue}`, value);
    for (const [queue, value] of sums(pods[1], "workqueue_depth", "name")) push(`controller queue: ${queue}`, value);
    for (const [name, url] of sources.slice(1)) {
      try { const found = await text(url, { signal, headers: { Accept: "*/*" } }); push(`${name}: pods`, [...sums(found, "kubelet_running_pods", "none").values()][0] || 0); mean(found, "kubelet_pod_start_sli_duration_seconds", `${name}: mean pod start ms`); } catch { /* the node is away */ }
    }
    show(body, h("div", { class: "cards" }, [...past].filter(([, values]) => values.some(Boolean)).map(([name, values]) => h("section", { class: "card" }, h("h3", null, name), sparkline(values, name), ` ${values.at(-1).toFixed(1)}`))));
  };
  await draw();
  const timer = setInterval(() => draw().catch(() => {}), 3000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return { key: () => false };
}

export { listPage };
