// One object: summary, YAML, events, relations, logs, shell, scheduling, why, trace.

import { json, query } from "./api.js";
import { age, facts, h, mood, rows, show, sparkline } from "./dom.js";
import { find, listPage, objectPage, ofKind, path } from "./kinds.js";
import { logsTab, podsOf, selectorOf } from "./logs.js";
import { relationsTab } from "./relations.js";
import { schedulingTab } from "./scheduling.js";
import { shellTab } from "./shell.js";
import { traceTab } from "./trace.js";
import { yamlTab } from "./yaml.js";

const LOGS = new Set(["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "Service"]);

export async function object(main, kind, namespace, name, tab, signal) {
  const url = path(kind, namespace, name);
  const panel = h("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}`, style: { display: "flex", "flex-direction": "column", flex: "1", "min-height": "0" } });
  const tabs = ["summary", "yaml", "events", "relations", ...(LOGS.has(kind.kind) ? ["logs"] : []), ...(kind.kind === "Pod" ? ["shell", "scheduling"] : []), "why", "trace"];
  if (!tabs.includes(tab)) tab = "summary";
  const buttons = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the object" }, tabs.map((each) => h("button", {
    type: "button", role: "tab", id: `tab-${each}`, "aria-selected": String(each === tab), "aria-controls": "panel", tabindex: each === tab ? "0" : "-1",
    onclick: () => { location.hash = objectPage(kind, namespace, name, each); },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const next = tabs[(tabs.indexOf(each) + step + tabs.length) % tabs.length];
      location.hash = objectPage(kind, namespace, name, next);
    },
  }, each === "yaml" ? "YAML" : each[0].toUpperCase() + each.slice(1))));
  show(main, h("div", { class: "bar" }, h("h1", null, h("a", { href: listPage(kind) }, kind.kind), ` ${name}`), namespace && h("span", { class: "faint" }, `in ${namespace}`)), buttons, panel);
  const found = await json(url, { signal });
  const draw = {
    summary: () => summary(panel, kind, found, url, signal), yaml: () => yamlTab(panel, kind, url), events: () => events(panel, found, signal),
    relations: () => relationsTab(panel, kind, found), logs: () => logsTab(panel, found, signal), shell: () => shellTab(panel, found, signal),
    scheduling: () => schedulingTab(panel, namespace, name), why: () => why(panel, kind, namespace, name), trace: () => traceTab(panel, kind, namespace, name),
  }[tab];
  await draw();
}

// The keys of an object's page, which lead to its parts.
export function objectKeys(kind, namespace, name) {
  return {
    key(event) {
      const wanted = { y: "yaml", e: "events", r: "relations", w: "why", t: "trace", l: "logs", s: "shell", a: "scheduling" }[event.key];
      if (!wanted) return false;
      location.hash = objectPage(kind, namespace, name, wanted);
      return true;
    },
  };
}

function chips(labels) {
  return Object.entries(labels || {}).map(([name, value]) => h("span", { class: "chip" }, value ? `${name}=${value}` : name));
}

function conditions(list) {
  if (!list?.length) return null;
  return [h("h2", null, "Conditions"), rows(["Type", "Status", "Reason", "Message", "Since"], list.map((each) => [
    each.type, h("span", { class: mood(each.status === "True" ? (/pressure|unavail|fail/i.test(each.type) ? "error" : "ready") : each.status === "False" ? (/pressure|unavail|fail/i.test(each.type) ? "ready" : "pending") : "unknown") }, each.status),
    each.reason, each.message, each.lastTransitionTime ? age(each.lastTransitionTime) : ""]))];
}

function containers(pod) {
  const states = new Map([...(pod.status?.initContainerStatuses || []), ...(pod.status?.containerStatuses || []), ...(pod.status?.ephemeralContainerStatuses || [])].map((each) => [each.name, each]));
  const all = [...(pod.spec.initContainers || []).map((each) => [each, "init"]), ...pod.spec.containers.map((each) => [each, ""]), ...(pod.spec.ephemeralContainers || []).map((each) => [each, "ephemeral"])];
  return [h("h2", null, "Containers"), rows(["Name", "Image", "State", "Ready", "Restarts", "Ports", "Requests", "Limits"], all.map(([each, sort]) => {
    const status = states.get(each.name), [state, detail] = Object.entries(status?.state || { unknown: {} })[0];
    const text = `${detail.reason || state}${detail.exitCode !== undefined ? ` (${detail.exitCode})` : ""}${detail.message ? `: ${detail.message}` : ""}`;
    const amounts = (list) => Object.entries(list || {}).map(([name, value]) => `${name} ${value}`).join(", ");
    return [`${each.name}${sort ? ` (${sort})` : ""}`, each.image, h("span", { class: mood(text) }, text), status?.ready ? "yes" : "no", status?.restartCount ?? "",
      (each.ports || []).map((port) => `${port.containerPort}/${port.protocol || "TCP"}`).join(" "), amounts(each.resources?.requests), amounts(each.resources?.limits)];
  }))];
}

async function usage(found, signal) {
  if (found.kind !== "Pod" && found.kind !== "Node") return null;
  const { name, namespace } = found.metadata;
  const url = `/apis/metrics.k8s.io/v1beta1${namespace ? `/namespaces/${namespace}` : ""}/${found.kind.toLowerCase()}s/${name}`;
  const seen = { cpu: [], memory: [] };
  const box = h("div", { class: "bar" });
  const read = async () => {
    const answer = await json(url, { signal });
    const parts = answer.containers ? answer.containers.map((each) => each.usage) : [answer.usage];
    for (const each of ["cpu", "memory"]) { seen[each].push(parts.reduce((sum, part) => sum + quantity(part[each]), 0)); if (seen[each].length > 60) seen[each].shift(); }
    show(box, h("span", null, "CPU ", sparkline(seen.cpu, "CPU usage"), ` ${(seen.cpu.at(-1) * 1000).toFixed(0)}m`), h("span", null, "Memory ", sparkline(seen.memory, "Memory usage"), ` ${(seen.memory.at(-1) / 1048576).toFixed(1)} MiB`));
  };
  try { await read(); } catch { return null; }
  const timer = setInterval(() => read().catch(() => {}), 10000);
  signal.addEventListener("abort", () => clearInterval(timer));
  return [h("h2", null, "Usage"), box];
}

export function quantity(text) {
  const match = /^([0-9.]+)(n|u|m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/.exec(text || "0");
  if (!match) return 0;
  return Number(match[1]) * ({ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 }[match[2]] || 1);
}

function special(found) {
  const { kind, spec = {}, status = {} } = found;
  if (kind === "Pod") return [["Phase", h("span", { class: mood(status.reason || status.phase || "") }, status.reason || status.phase)], ["Node", spec.nodeName && link("nodes", "", spec.nodeName)], ["Address", status.podIP], ["Quality of service", status.qosClass], ["Service account", spec.serviceAccountName], ["Priority", spec.priority]];
  if (spec.replicas !== undefined) return [["Replicas", `${status.readyReplicas || 0} ready of ${spec.replicas}`], ["Selector", selectorOf(found)]];
  if (kind === "Service") return [["Type", spec.type], ["Cluster IP", spec.clusterIP], ["Ports", (spec.ports || []).map((each) => `${each.name || ""} ${each.port}→${each.targetPort} ${each.nodePort ? `(node ${each.nodePort})` : ""}`).join(", ")], ["Selector", selectorOf(found)]];
  if (kind === "Node") return [["Kubelet", status.nodeInfo?.kubeletVersion], ["Runtime", status.nodeInfo?.containerRuntimeVersion], ["Addresses", (status.addresses || []).map((each) => each.address).join(", ")], ["Taints", (spec.taints || []).map((each) => `${each.key}:${each.effect}`).join(", ")], ["Capacity", Object.entries(status.capacity || {}).map(([name, value]) => `${name} ${value}`).join(", ")]];
  if (kind === "PersistentVolumeClaim") return [["Phase", status.phase], ["Volume", spec.volumeName && link("persistentvolumes", "", spec.volumeName)], ["Class", spec.storageClassName], ["Size", status.capacity?.storage || spec.resources?.requests?.storage]];
  if (kind === "Job") return [["Succeeded", `${status.succeeded || 0} of ${spec.completions ?? 1}`], ["Active", status.active], ["Failed", status.failed]];
  if (kind === "CronJob") return [["Schedule", spec.schedule], ["Suspended", spec.suspend ? "yes" : "no"], ["Last", status.lastScheduleTime]];
  return status.phase ? [["Phase", status.phase]] : [];
}

export const link = (resource, namespace, name) => h("a", { href: objectPage(find(resource), namespace, name) }, name);

async function summary(panel, kind, found, url, signal) {
  const { metadata } = found;
  const owners = (metadata.ownerReferences || []).map((each) => { const owner = ofKind(each.apiVersion, each.kind); return [owner ? h("a", { href: objectPage(owner, owner.namespaced ? metadata.namespace : "", each.name) }, `${each.kind} ${each.name}`) : `${each.kind} ${each.name}`, " "]; });
  const forward = ["Pod", "Service"].includes(kind.kind) && (found.spec.ports || found.spec.containers?.flatMap((each) => each.ports || []) || []).map((each) => h("code", null, `kubectl port-forward -n ${metadata.namespace} ${kind.kind.toLowerCase()}/${metadata.name} ${each.containerPort || each.port}`, h("br")));
  show(panel, facts([["Created", `${metadata.creationTimestamp} (${age(metadata.creationTimestamp)} ago)`], ...special(found), ["Deleted", metadata.deletionTimestamp && h("span", { class: "bad" }, metadata.deletionTimestamp)],
    ["Finalizers", metadata.finalizers?.join(", ")], ["Owners", owners.length ? owners : ""], ["Labels", chips(metadata.labels)], ["Annotations", Object.keys(metadata.annotations || {}).length ? chips(Object.fromEntries(Object.entries(metadata.annotations).map(([name, value]) => [name, value.length > 80 ? `${value.slice(0, 80)}…` : value]))) : ""], ["Forward", forward?.length ? forward : ""]]),
  kind.kind === "Pod" && containers(found), conditions(found.status?.conditions));
  const used = await usage(found, signal);
  if (used && !signal.aborted) panel.append(...used);
}

async function events(panel, found, signal) {
  const { kind, metadata } = found;
  const fields = `involvedObject.name=${metadata.name},involvedObject.kind=${kind}`;
  const { items } = await json(query(path(find("events"), metadata.namespace), { fieldSelector: fields, limit: 500 }), { signal });
  const when = (each) => each.series?.lastObservedTime || each.lastTimestamp || each.eventTime || each.metadata.creationTimestamp;
  items.sort((a, b) => Date.parse(when(b)) - Date.parse(when(a)));
  show(panel, items.length ? rows(["Last", "Type", "Reason", "Message", "Count", "From"], items.map((each) => [age(when(each)), h("span", { class: each.type === "Warning" ? "warn" : "" }, each.type), each.reason, each.message, each.series?.count || each.count || 1, each.source?.component || each.reportingComponent]))
    : h("p", { class: "faint" }, "There are no events of this object."));
}

async function why(panel, kind, namespace, name) {
  show(panel, h("p", { class: "faint" }, "Asking"));
  const answer = await json(query("/-/why", { resource: kind.id, namespace, name }));
  show(panel, h("p", { class: "sentence" }, answer.sentence), answer.details.length ? h("pre", { class: "code" }, answer.details.join("\n")) : null, answer.help && h("p", null, h("strong", null, "What would help: "), answer.help));
}

export { podsOf };
