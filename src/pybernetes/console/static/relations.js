// What an object belongs to, what belongs to it, and what it uses: owners, dependents, endpoints, volumes, configuration, node.

import { json, query } from "./api.js";
import { h, rows, show } from "./dom.js";
import { find, objectPage, ofKind, path } from "./kinds.js";
import { selectorOf } from "./logs.js";

const DEPENDENTS = { Deployment: ["replicasets.apps"], ReplicaSet: ["pods"], StatefulSet: ["pods", "controllerrevisions.apps"], DaemonSet: ["pods", "controllerrevisions.apps"], Job: ["pods"], CronJob: ["jobs.batch"], ReplicationController: ["pods"], Service: ["endpointslices.discovery.k8s.io"], Node: [] };
const PARTIAL = { headers: { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json" } };

export async function relationsTab(panel, kind, found) {
  const { metadata, spec = {} } = found, namespace = metadata.namespace || "";
  const lines = [];
  const add = (how, resource, name, inside = namespace) => { const known = typeof resource === "string" ? find(resource) : resource; if (known && name) lines.push([how, known.kind, h("a", { href: objectPage(known, known.namespaced ? inside : "", name) }, name)]); };

  for (const each of metadata.ownerReferences || []) add(each.controller ? "controlled by" : "owned by", ofKind(each.apiVersion, each.kind), each.name);
  if (kind.kind === "Pod") {
    add("runs on", "nodes", spec.nodeName);
    add("is", "serviceaccounts", spec.serviceAccountName);
    for (const volume of spec.volumes || []) {
      add("mounts", "persistentvolumeclaims", volume.persistentVolumeClaim?.claimName || (volume.ephemeral && `${metadata.name}-${volume.name}`));
      for (const each of [volume, ...(volume.projected?.sources || [])]) { add("mounts", "configmaps", each.configMap?.name); add("mounts", "secrets", each.secret?.secretName || each.secret?.name); }
    }
    for (const container of [...(spec.initContainers || []), ...spec.containers]) {
      for (const each of container.envFrom || []) { add("reads", "configmaps", each.configMapRef?.name); add("reads", "secrets", each.secretRef?.name); }
      for (const { valueFrom } of container.env || []) { add("reads", "configmaps", valueFrom?.configMapKeyRef?.name); add("reads", "secrets", valueFrom?.secretKeyRef?.name); }
    }
    const services = (await json(path(find("services"), namespace))).items;
    for (const each of services) if (each.spec.selector && Object.entries(each.spec.selector).every(([name, value]) => metadata.labels?.[name] === value)) add("selected by", "services", each.metadata.name);
  }
  if (kind.kind === "PersistentVolumeClaim") { add("bound to", "persistentvolumes", spec.volumeName); add("of class", "storageclasses.storage.k8s.io", spec.storageClassName); }
  if (kind.kind === "PersistentVolume") { add("claimed by", "persistentvolumeclaims", spec.claimRef?.name, spec.claimRef?.namespace); add("of class", "storageclasses.storage.k8s.io", spec.storageClassName); }
  if (kind.kind === "Ingress") for (const rule of spec.rules || []) for (const each of rule.http?.paths || []) add("leads to", "services", each.backend.service?.name);
  if (spec.scaleTargetRef) add("scales", ofKind(spec.scaleTargetRef.apiVersion || "v1", spec.scaleTargetRef.kind), spec.scaleTargetRef.name);

  const custom = kind.group.includes(".") && !kind.group.endsWith(".k8s.io");
  for (const id of DEPENDENTS[kind.kind] || (custom ? ["pods", "deployments.apps", "statefulsets.apps", "services", "configmaps", "secrets"] : [])) {
    const list = await json(query(path(find(id), namespace), { limit: 2000 }), PARTIAL);
    for (const each of list.items) if (each.metadata.ownerReferences?.some((owner) => owner.uid === metadata.uid)) add("owns", id, each.metadata.name);
  }
  if (kind.kind === "Node") {
    const pods = await json(query(path(find("pods")), { fieldSelector: `spec.nodeName=${metadata.name}`, limit: 500 }), PARTIAL);
    for (const each of pods.items) add("runs", "pods", each.metadata.name, each.metadata.namespace);
  }
  if (kind.kind === "Service" && selectorOf(found)) {
    const pods = await json(query(path(find("pods"), namespace), { labelSelector: selectorOf(found), limit: 500 }), PARTIAL);
    for (const each of pods.items) add("selects", "pods", each.metadata.name);
  }
  if (kind.kind === "ConfigMap" || kind.kind === "Secret" || kind.kind === "PersistentVolumeClaim") {
    const field = { ConfigMap: "configMap", Secret: "secret", PersistentVolumeClaim: "persistentVolumeClaim" }[kind.kind];
    for (const pod of (await json(query(path(find("pods"), namespace), { limit: 2000 }))).items) {
      const used = (pod.spec.volumes || []).some((each) => [each, ...(each.projected?.sources || [])].some((source) => [source[field]?.name, source[field]?.secretName, source[field]?.claimName].includes(metadata.name)))
        || pod.spec.containers.some((each) => [...(each.envFrom || []).map((from) => from[`${field}Ref`]?.name), ...(each.env || []).map((variable) => variable.valueFrom?.[`${field}KeyRef`]?.name)].includes(metadata.name));
      if (used) add("used by", "pods", pod.metadata.name);
    }
  }
  show(panel, lines.length ? rows(["Relation", "Kind", "Name"], lines) : h("p", { class: "faint" }, "No relations are known."));
}
