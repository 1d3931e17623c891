// What the server serves: resources by group, found by name, short name or kind.

import { json } from "./api.js";

const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const GROUPS = [
  ["Workloads", ["pods", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling"]],
  ["Network", ["services", "endpointslices.discovery.k8s.io", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io"]],
  ["Storage", ["persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"]],
  ["Configuration", ["configmaps", "secrets", "serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"]],
  ["Cluster", ["nodes", "namespaces", "events", "customresourcedefinitions.apiextensions.k8s.io"]],
];

export let all = [];
const found = new Map();

export async function discover() {
  const lists = await Promise.all(["api", "apis"].map((path) => json(path, { headers: { Accept: ACCEPT } })));
  all = [];
  found.clear();
  for (const group of lists.flatMap((each) => each.items)) {
    const name = group.metadata?.name || "";
    const seen = new Set();
    for (const version of group.versions) {
      for (const each of version.resources || []) {
        if (seen.has(each.resource) || !each.verbs.includes("list")) continue;
        seen.add(each.resource);
        const kind = each.responseKind.kind;
        all.push({
          id: name ? `${each.resource}.${name}` : each.resource, resource: each.resource, group: name, version: version.version, kind,
          apiVersion: name ? `${name}/${version.version}` : version.version, namespaced: each.scope === "Namespaced", verbs: each.verbs,
          names: [each.resource, each.singularResource, kind.toLowerCase(), ...(each.shortNames || [])],
        });
      }
    }
  }
  for (const each of all) for (const name of [each.id, ...each.names]) if (name && !found.has(name)) found.set(name, each);
  return all;
}

export const find = (word) => found.get(word.trim().toLowerCase());
export const ofKind = (apiVersion, kind) => {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return all.find((each) => each.kind === kind && each.group === group);
};

export function path(kind, namespace, name) {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const inside = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${inside}/${kind.resource}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

export function menu() {
  const named = new Set(GROUPS.flatMap(([, ids]) => ids));
  const custom = all.filter((each) => each.group.includes(".") && !each.group.endsWith(".k8s.io"));
  const rest = all.filter((each) => !named.has(each.id) && !custom.includes(each));
  const groups = GROUPS.map(([title, ids]) => [title, ids.map((id) => all.find((each) => each.id === id)).filter(Boolean)]);
  return [...groups, ["Custom", custom], ["More", rest]].filter(([, kinds]) => kinds.length);
}

export const listPage = (kind) => `#/list/${kind.id}`;
export const objectPage = (kind, namespace, name, tab = "summary") => `#/object/${kind.id}/${encodeURIComponent(namespace || "-")}/${encodeURIComponent(name)}/${tab}`;
