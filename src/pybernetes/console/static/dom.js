// Elements as function calls, and the few things every view shows.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((each) => each !== undefined && each !== null && each !== false));
  return element;
}

export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((each) => each !== undefined && each !== null && each !== false));
  return element;
}

export function notice(message) {
  const line = h("div", null, String(message));
  document.getElementById("notice").append(line);
  setTimeout(() => line.remove(), 8000);
}

export function age(time, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (!Number.isFinite(seconds)) return "<unknown>";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

const BAD = /error|fail|backoff|oomkilled|notready|unknown|evicted|invalid|lost/i;
const WARN = /pending|terminating|creating|init|warning|released|disabled/i;
const GOOD = /^(running|ready|active|bound|available|complete|completed|succeeded|true|normal)$/i;

export function mood(text) {
  return BAD.test(text) ? "bad" : WARN.test(text) ? "warn" : GOOD.test(text) ? "good" : "";
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => [h("dt", null, name), h("dd", null, value instanceof Node || Array.isArray(value) ? value : String(value))]));
}

export function rows(heads, lines) {
  return h("table", null, h("thead", null, h("tr", null, heads.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", null, lines.map((line) => h("tr", null, line.map((each) => h("td", { class: "wrap" }, each ?? ""))))));
}

export function sparkline(values, label) {
  const most = Math.max(...values, 1e-9), step = 160 / Math.max(values.length - 1, 1);
  const path = values.map((each, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(33 - (each / most) * 31).toFixed(1)}`).join("");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 160 34"); svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img"); svg.setAttribute("aria-label", label);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path || "M0 33");
  svg.append(line);
  return svg;
}
