// The session, requests to the API server, lists in pieces, watches that go on.

let token = sessionStorage.getItem("pyb-session") || "";

export class ApiError extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

// The one-time key of the address is exchanged for the session's token, and taken out of the address.
export async function open() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (key) {
    history.replaceState(null, "", "#/");
    const response = await fetch("session", { method: "POST", body: key });
    if (!response.ok) throw new ApiError(response.status, (await response.json()).message);
    token = (await response.json()).token;
    sessionStorage.setItem("pyb-session", token);
  }
  if (!token) throw new ApiError(401, "There is no session: run `pyb console` and open the address that it prints.");
}

export async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { Accept: "application/json", ...options.headers, "X-Pyb-Session": token } });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try { message = JSON.parse(text).message || text; } catch { /* not a Status */ }
  throw new ApiError(response.status, message || `${response.status} ${response.statusText}`);
}

export const json = async (path, options) => (await request(path, options)).json();
export const text = async (path, options) => (await request(path, options)).text();

export function query(path, parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  return pairs.length ? `${path}?${new URLSearchParams(pairs.map(([name, value]) => [name, value === true ? "true" : String(value)]))}` : path;
}

export function socket(path, protocols) {
  const made = new WebSocket(`ws://${location.host}${path}`, [...protocols, `session.pyb.${token}`]);
  made.binaryType = "arraybuffer";
  return made;
}

// Lines of a response as they arrive.
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

export const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

// Calls `sink.page(list, first)`, `sink.listed()` and then `sink.event(type, object)` until the signal ends it; begins anew when
// the watch's history is over. A list is read in a small first page, so that something is seen, and large further ones.
export async function follow(path, parameters, accept, sink, signal) {
  const headers = { Accept: accept };
  let pause = 500;
  while (!signal.aborted) {
    try {
      let next = "", version = "", first = true;
      do {
        const page = await json(query(path, { ...parameters, limit: first ? 200 : 5000, continue: next }), { headers, signal });
        sink.page(page, first);
        version = page.metadata.resourceVersion; next = page.metadata.continue || ""; first = false;
      } while (next);
      sink.listed();
      for (;;) {
        const response = await request(query(path, { ...parameters, watch: true, allowWatchBookmarks: true, resourceVersion: version }), { headers, signal });
        pause = 500;
        for await (const line of lines(response)) {
          if (!line) continue;
          const { type, object } = JSON.parse(line);
          if (type === "ERROR") throw new ApiError(object.code, object.message);
          version = versionOf(object) || version;
          if (type !== "BOOKMARK") sink.event(type, object);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 403 || error.code === 404 || error.code === 401) throw error;
      if (error.code !== 410) { await new Promise((done) => setTimeout(done, pause)); pause = Math.min(pause * 2, 15000); }
    }
  }
}

function versionOf(object) {
  if (object.kind !== "Table") return object.metadata?.resourceVersion;
  return object.rows?.length ? object.rows[object.rows.length - 1].object?.metadata?.resourceVersion : object.metadata?.resourceVersion;
}
