// Start, routes (#/, #/list/KIND, #/object/KIND/NS/NAME/TAB, #/metrics, #/trace), keys.

import { json, open } from "./api.js";
import { h, notice, show } from "./dom.js";
import { discover, find, listPage, menu, all } from "./kinds.js";
import { list } from "./list.js";
import { object, objectKeys } from "./object.js";
import { metrics, overview } from "./overview.js";
import { tracePage } from "./trace.js";

const main = document.getElementById("main"), namespace = document.getElementById("namespace"), command = document.getElementById("command"), keys = document.getElementById("keys");
let view = null, running = new AbortController();

async function route() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const [, page, id, ...rest] = location.hash.replace(/^#/, "").split("/").map(decodeURIComponent);
  view = null;
  const kind = id && find(id);
  for (const each of document.querySelectorAll("#menu a")) {
    if (each.getAttribute("href") === (kind ? listPage(kind) : `#/${page || ""}`)) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
  document.title = [kind?.kind, page === "object" && rest[1], "Pybernetes"].filter(Boolean).join(" · ");
  try {
    if (!page) view = await overview(main, signal);
    else if (page === "trace") view = await tracePage(main, id);
    else if (page === "metrics") view = await metrics(main, signal);
    else if (!kind) show(main, h("h1", null, "Unknown kind"), h("p", null, `The server has no kind ${id || page}.`));
    else if (page === "list") view = list(main, kind, { namespace: namespace.value, filter: rest[0], signal });
    else {
      const where = rest[0] === "-" ? "" : rest[0];
      view = objectKeys(kind, where, rest[1]);
      await object(main, kind, where, rest[1], rest[2], signal);
    }
  } catch (error) {
    if (signal.aborted) return;
    show(main, h("h1", null, "This cannot be shown"), h("p", { class: "bad", role: "alert" }, error.message));
  }
}

async function namespaces() {
  try {
    const { items } = await json("/api/v1/namespaces");
    const chosen = namespace.value || sessionStorage.getItem("pyb-namespace") || "";
    show(namespace, h("option", { value: "" }, "All"), items.map((each) => h("option", null, each.metadata.name)));
    namespace.value = [...namespace.options].some((each) => each.value === chosen) ? chosen : "";
  } catch { /* a user of one namespace may not list them */ }
}

function go(word) {
  const kind = find(word);
  if (["", "cluster", "home"].includes(word.trim())) location.hash = "#/";
  else if (["metrics", "trace"].includes(word.trim())) location.hash = `#/${word.trim()}`;
  else if (kind) location.hash = listPage(kind);
  else notice(`The server has no kind ${word}`);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  if (event.key === "Escape") { if (typing) { event.target.blur(); main.focus(); } else history.back(); return; }
  if (typing) { if (event.key === "Enter" && event.target.id === "filter") { event.target.blur(); main.focus(); } return; }
  if (event.target.closest("button, a") && event.key === "Enter") return;
  if (event.key === ":") command.focus();
  else if (event.key === "n") namespace.focus();
  else if (event.key === "?") keys.showModal();
  else if (!view?.key(event)) return;
  event.preventDefault();
});
command.addEventListener("keydown", (event) => { if (event.key === "Enter") { go(command.value); command.value = ""; command.blur(); main.focus(); } });
namespace.addEventListener("change", () => { sessionStorage.setItem("pyb-namespace", namespace.value); route(); });
document.getElementById("help").addEventListener("click", () => keys.showModal());
window.addEventListener("unhandledrejection", (event) => { if (event.reason?.name !== "AbortError") notice(event.reason?.message || event.reason); });

try {
  await open();
  const [info] = await Promise.all([json("/-/info"), discover(), namespaces()]);
  document.getElementById("where").textContent = [info.context, info.user, info.server].filter(Boolean).join(" · ");
  show(document.getElementById("kinds"), all.map((each) => h("option", { value: each.resource })));
  show(document.getElementById("menu"), h("a", { href: "#/" }, "Cluster"), h("a", { href: "#/metrics" }, "Metrics"), h("a", { href: "#/trace" }, "Trace"), menu().map(([title, kinds]) => [h("h2", null, title), kinds.map((each) => h("a", { href: listPage(each) }, each.kind))]));
  window.addEventListener("hashchange", route);
  await route();
} catch (error) {
  show(main, h("h1", null, "No session"), h("p", { class: "bad", role: "alert" }, error.message));
}
