// A terminal in a container: exec or attach over a WebSocket, drawn from a Screen.

import { socket } from "./api.js";
import { h, show } from "./dom.js";
import { find, path } from "./kinds.js";
import { containersOf } from "./logs.js";
import { Screen } from "./screen.js";

const SHELL = ["sh", "-c", "TERM=xterm-256color; export TERM; command -v bash >/dev/null 2>&1 && exec bash || exec sh"];
const KEYS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const MORE = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", Delete: "\x1b[3~", Insert: "\x1b[2~", PageUp: "\x1b[5~", PageDown: "\x1b[6~", F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS", F5: "\x1b[15~", F6: "\x1b[17~", F7: "\x1b[18~", F8: "\x1b[19~", F9: "\x1b[20~", F10: "\x1b[21~", F11: "\x1b[23~", F12: "\x1b[24~" };

export function shellTab(panel, pod, signal) {
  const container = h("select", { "aria-label": "Container" }, containersOf(pod).map((each) => h("option", null, each)));
  container.value = pod.spec.containers[0].name;
  const how = h("select", { "aria-label": "How" }, h("option", { value: "exec" }, "Shell"), h("option", { value: "attach" }, "Attach"));
  const state = h("span", { class: "faint", role: "status" });
  const view = h("div", { class: "terminal", tabindex: "0", role: "textbox", "aria-multiline": "true", "aria-label": "Terminal" });
  show(panel, h("div", { class: "bar" }, how, container, h("button", { type: "button", onclick: () => connect() }, "Connect again"), state), view);
  const screen = new Screen(80, 24), encoder = new TextEncoder();
  let channel = null, frame = 0;

  const send = (text, number = 0) => {
    if (channel?.readyState !== WebSocket.OPEN) return;
    const bytes = encoder.encode(text), message = new Uint8Array(bytes.length + 1);
    message[0] = number; message.set(bytes, 1);
    channel.send(message);
  };
  screen.reply = send;

  function measure() {
    const probe = h("span", null, "0".repeat(20));
    view.append(probe);
    const { width } = probe.getBoundingClientRect();
    probe.remove();
    const columns = Math.max(20, Math.floor((view.clientWidth - 14) / (width / 20))), rows = Math.max(6, Math.floor((view.clientHeight - 12) / 17));
    if (columns !== screen.columns || rows !== screen.rows) screen.resize(columns, rows);
    send(JSON.stringify({ Width: columns, Height: rows }), 4);
    draw();
  }

  function line(cells, cursor) {
    const made = h("div");
    let run = "", style = "";
    const flush = () => { if (run) { const span = h("span", null, run); if (style) paint(span, style); made.append(span); } run = ""; };
    cells.forEach((cell, x) => {
      if (x === cursor) { flush(); made.append(h("span", { class: "cursor" }, cell.c)); return; }
      if (cell.s !== style) { flush(); style = cell.s; }
      run += cell.c;
    });
    flush();
    return made;
  }

  function paint(span, style) {
    const [bold, italic, underline, inverse, front, back] = style.split("|");
    if (bold === "1") span.style.fontWeight = "bold";
    if (italic === "1") span.style.fontStyle = "italic";
    if (underline === "1") span.style.textDecoration = "underline";
    span.style.color = inverse === "1" ? back || "#0e1116" : front;
    span.style.background = inverse === "1" ? front || "#dbe1e9" : back;
  }

  function draw() {
    frame = 0;
    const past = screen.other ? [] : screen.history;
    show(view, past.map((each) => line(each, -1)), screen.lines.map((each, y) => line(each, screen.cursorShown && y === screen.y ? screen.x : -1)));
    view.scrollTop = view.scrollHeight;
  }
  const schedule = () => { frame ||= requestAnimationFrame(draw); };

  function connect() {
    channel?.close();
    screen.reset();
    const parameters = new URLSearchParams([["container", container.value], ["stdin", "true"], ["stdout", "true"], ["tty", "true"], ...(how.value === "exec" ? SHELL.map((each) => ["command", each]) : [])]);
    const made = socket(`${path(find("pods"), pod.metadata.namespace, pod.metadata.name)}/${how.value}?${parameters}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    const decoder = new TextDecoder();
    channel = made;
    state.textContent = "Connecting";
    made.onopen = () => { state.textContent = "Connected"; measure(); view.focus(); };
    made.onmessage = ({ data }) => {
      const bytes = new Uint8Array(data), content = bytes.subarray(1);
      if (bytes[0] === 1 || bytes[0] === 2) { screen.write(decoder.decode(content, { stream: true })); schedule(); }
      else if (bytes[0] === 3) { try { const status = JSON.parse(new TextDecoder().decode(content)); state.textContent = status.status === "Success" ? "Ended" : `Ended: ${status.message}`; } catch { /* no Status */ } }
    };
    made.onclose = () => { if (channel === made && state.textContent.startsWith("Conn")) state.textContent = "Closed: the container has no shell, or the connection was refused."; };
  }

  view.addEventListener("keydown", (event) => {
    if (event.metaKey || (event.ctrlKey && event.shiftKey)) return;
    let text = "";
    if (KEYS[event.key]) text = `\x1b${screen.applicationKeys ? "O" : "["}${KEYS[event.key]}`;
    else if (event.key === "Tab" && event.shiftKey) return; // the way out of the terminal for the keyboard
    else if (MORE[event.key]) text = MORE[event.key];
    else if (event.ctrlKey && event.key.length === 1) { const code = event.key.toUpperCase().charCodeAt(0); if (code >= 64 && code < 96) text = String.fromCharCode(code - 64); else if (event.key === " ") text = "\0"; }
    else if (event.key.length === 1) text = (event.altKey ? "\x1b" : "") + event.key;
    if (!text) return;
    event.preventDefault();
    event.stopPropagation();
    send(text);
  });
  view.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    event.preventDefault();
    send(screen.bracketedPaste ? `\x1b[200~${text}\x1b[201~` : text);
  });
  const resized = new ResizeObserver(measure);
  resized.observe(view);
  signal.addEventListener("abort", () => { resized.disconnect(); cancelAnimationFrame(frame); channel?.close(); });
  container.addEventListener("change", connect);
  how.addEventListener("change", connect);
  connect();
}
