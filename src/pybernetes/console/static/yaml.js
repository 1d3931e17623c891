// The YAML of an object: values of Secrets masked until asked for, edit, the difference that a server-side dry run shows, apply.

import { text } from "./api.js";
import { h, notice, show } from "./dom.js";

const YAML = { Accept: "application/yaml" };

export async function yamlTab(panel, kind, url) {
  let source = strip(await text(url, { headers: YAML }));
  let revealed = kind.id !== "secrets";
  const draw = () => {
    const edit = h("button", { type: "button", onclick: () => editor(), disabled: !revealed || !kind.verbs.includes("update") }, "Edit");
    const reveal = kind.id === "secrets" && h("button", { type: "button", onclick: () => { revealed = !revealed; draw(); } }, revealed ? "Hide values" : "Show values");
    const copy = h("button", { type: "button", disabled: !revealed, onclick: () => navigator.clipboard?.writeText(source).then(() => notice("Copied")) }, "Copy");
    show(panel, h("div", { class: "bar" }, edit, copy, reveal), h("pre", { class: "code", tabindex: "0", "aria-label": "YAML" }, highlight(revealed ? source : masked(source))));
  };

  function editor() {
    const area = h("textarea", { class: "code", spellcheck: "false", "aria-label": "YAML" });
    area.value = source;
    const result = h("div", { role: "status" });
    const send = async (dry) => text(`${url}?fieldManager=pyb-console&fieldValidation=Strict${dry ? "&dryRun=All" : ""}`, { method: "PUT", body: area.value, headers: { ...YAML, "Content-Type": "application/yaml" } });
    const apply = h("button", { type: "button", class: "primary", disabled: true, onclick: async () => {
      try { source = strip(await send(false)); notice("Saved"); draw(); } catch (error) { show(result, h("p", { class: "bad", role: "alert" }, error.message)); }
    } }, "Save");
    area.addEventListener("input", () => { apply.disabled = true; show(result); });
    const preview = h("button", { type: "button", onclick: async () => {
      try {
        const lines = difference(source.split("\n"), strip(await send(true)).split("\n")).filter(([sign], i, all) => sign !== " " || all.slice(Math.max(0, i - 2), i + 3).some(([each]) => each !== " "));
        show(result, h("h2", null, "What would change"), lines.length ? h("pre", { class: "code" }, lines.map(([sign, line]) => h("div", { class: sign === "+" ? "added" : sign === "-" ? "removed" : "" }, `${sign} ${line}`))) : h("p", null, "Nothing."));
        apply.disabled = false;
      } catch (error) { show(result, h("p", { class: "bad", role: "alert" }, error.message)); }
    } }, "Preview");
    show(panel, h("div", { class: "bar" }, preview, apply, h("button", { type: "button", onclick: draw }, "Cancel"), h("span", { class: "faint" }, "The preview is a dry run on the server: defaults, admission and validation included.")), area, result);
    area.focus();
  }
  draw();
}

// managedFields are many lines that nobody edits.
export function strip(source) {
  const kept = [];
  let inside = -1;
  for (const line of source.split("\n")) {
    const indent = line.length - line.trimStart().length;
    if (inside >= 0 && (indent > inside || line.trim().startsWith("- ") && indent === inside)) continue;
    inside = -1;
    if (/^ {2}managedFields:/.test(line)) { inside = indent; continue; }
    kept.push(line);
  }
  return kept.join("\n");
}

export function masked(source) {
  let inside = false;
  return source.split("\n").map((line) => {
    if (/^\S/.test(line)) { inside = /^(data|stringData):/.test(line); return line; }
    if (/kubectl\.kubernetes\.io\/last-applied-configuration/.test(line)) return line.replace(/:.*/, ": ******");
    if (!inside) return line;
    return /^ {2}[^ ][^:]*:/.test(line) ? line.replace(/:.*/, ": ******") : "";
  }).filter((line, i, all) => line || i === all.length - 1).join("\n");
}

function highlight(source) {
  return source.split("\n").map((line) => {
    const match = /^(\s*(?:- )?)([^\s#:][^:]*)(:)(.*)$/.exec(line);
    return match ? h("div", null, match[1], h("span", { class: "key" }, match[2]), match[3] + match[4]) : h("div", null, line || " ");
  });
}

// Lines of both with their sign; by longest common subsequence between the equal beginning and end.
export function difference(before, after) {
  let start = 0, end = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const a = before.slice(start, before.length - end), b = after.slice(start, after.length - end), middle = [];
  if (a.length * b.length > 4e6) middle.push(...a.map((line) => ["-", line]), ...b.map((line) => ["+", line]));
  else {
    const longest = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) { middle.push([" ", a[i]]); i++; j++; }
      else if (i < a.length && (j >= b.length || longest[i + 1][j] >= longest[i][j + 1])) middle.push(["-", a[i++]]);
      else middle.push(["+", b[j++]]);
    }
  }
  return [...before.slice(0, start).map((line) => [" ", line]), ...middle, ...before.slice(before.length - end).map((line) => [" ", line])];
}
