"""`KubeletServer`: the socket, who may, and who answers.

Paths are found by their first part. Whatever is not public is asked about (`authz`) before anything is looked up, and
what goes wrong is answered in plain text, as upstream's kubelet does; the API server turns that into a Status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, unquote

import msgspec

from pybernetes.api.errors import APIError
from pybernetes.client.checks import Check, Checks
from pybernetes.client.metrics import Registry
from pybernetes.cri.remote import Runtime
from pybernetes.net.http import HTTPServer, Request, Response
from pybernetes.net.tls import ServingTLS

from .answers import Refused, json, text
from .authn import Authenticator, User
from .authz import Authorizer, subresources, verb_of
from .checkpoint import Checkpoints
from .logs import container_logs
from .pods import pods, running_pods
from .request_metrics import RequestMetrics
from .source import Source
from .streaming import attach, execute, port_forward, run
from .system_logs import SystemLogs

log = logging.getLogger(__name__)

_STREAMS = ("exec", "attach", "portForward")
MAX_BODY = 1 << 20  # bytes; nothing that is sent here has more than a few
_GRACE = 1.0  # seconds for requests in flight at the end
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Handler = Callable[[Request], Awaitable[Response | None]]


class Call(msgspec.Struct):
    """A request, taken apart, and what is needed to answer it."""

    request: Request
    parts: list[str]
    """Of the path, unescaped, behind its first part."""
    query: dict[str, list[str]]
    source: Source
    runtime: Runtime

    def first(self, name: str) -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [""])[0]


Route = Callable[[Call], Awaitable[Response | None]]


class KubeletServer:
    """The kubelet's server; `source.Source` is its view of the kubelet."""

    def __init__(
        self,
        source: Source,
        runtime: Runtime,
        *,
        authn: Authenticator | None,
        authz: Authorizer | None,
        system_logs: str = "/var/log",
        log_query: bool = False,
        checkpoints: Path | None = None,
        debugging: bool = True,
        health_only: bool = False,
        metrics: Registry | None = None,
    ) -> None:
        """Without `authn` and `authz` this is the read-only port: pods, and what is added; or health and nothing else.

        `debugging`: upstream's enableDebuggingHandlers; `system_logs`: the folder behind /logs, empty for none;
        `log_query`: whether /logs serves the logs of services; `checkpoints`: the folder for those of containers;
        `metrics`: where requests are counted.
        """
        self.port = 0
        self.streams = 0
        """Execs, attaches and port-forwards under way."""
        self._source = source
        self._runtime = runtime
        self._metrics = RequestMetrics(metrics, read_only=authn is None) if metrics is not None else None
        self._authn = authn
        self._authz = authz
        self._http: HTTPServer | None = None
        self._server: asyncio.Server | None = None
        self._added: dict[str, Handler] = {}
        self._prefixes: dict[str, Handler] = {}
        self._routes: dict[str, tuple[tuple[str, ...], Route]] = {}
        self._fixed: dict[str, Check] = {
            "ping": lambda: True,
            "log": lambda: True,
            "syncloop": source.sync_loop_problem,
        }
        self._checks = Checks({"healthz": self._fixed})
        if not health_only:
            self._routes["pods"] = (("GET",), pods)
        if authn is not None:
            self._install(system_logs, debugging, log_query, checkpoints)

    def _install(self, system_logs: str, debugging: bool, log_query: bool, checkpoints: Path | None) -> None:
        routes = self._routes
        self.add("/metrics/slis", self._slis)
        if not debugging:
            for each in ("run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs"):
                routes[each] = ((), _disabled("Debug endpoints are disabled.\n"))
            return
        routes["containerLogs"] = (("GET",), container_logs)
        routes["exec"] = (("GET", "POST"), self._streaming(execute))
        routes["attach"] = (("GET", "POST"), self._streaming(attach))
        routes["portForward"] = (("GET", "POST"), self._streaming(port_forward))
        routes["run"] = (("POST",), run)
        routes["runningpods"] = (("GET",), running_pods)
        routes["configz"] = (("GET",), self._configz)
        if checkpoints is not None:
            routes["checkpoint"] = (("POST",), Checkpoints(checkpoints))
        disabled = ((), _disabled("logs endpoint is disabled.\n"))
        routes["logs"] = (("GET",), SystemLogs(system_logs, query=log_query)) if system_logs else disabled
        routes["debug"] = ((), _disabled("profiling endpoint is disabled.\n"))

    def add(self, path: str, handler: Handler, *, prefix: bool = False) -> None:
        """Answer one more path, or with `prefix` all below it; to those who may (`authz.subresources`)."""
        (self._prefixes if prefix else self._added)[path] = handler

    def replace(self, root: str, serve: Route) -> None:
        """Answer what begins with this part in another way: for a node whose runtime speaks no CRI."""
        methods, _ = self._routes[root]
        self._routes[root] = (methods, self._streaming(serve) if root in _STREAMS else serve)

    async def start(self, address: str, port: int, tls: ServingTLS | None) -> int:
        """Listen; the port. Without `tls` in the clear, as the read-only port does. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._http = HTTPServer(self, _malformed, max_body=MAX_BODY, audited=False)
        self._server = await loop.create_server(
            self._http, address, port, ssl=tls.context if tls else None, backlog=128
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Listen no more, and end what is under way."""
        if self._server is not None:
            self._server.close()
        if self._http is not None:
            await self._http.drain(_GRACE)

    # -- one request --------------------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Response | None:
        """Answer a request."""
        if self._metrics is None:
            return await self._serve(request)
        with self._metrics.counted(request.method, request.path):
            return await self._serve(request)

    async def _serve(self, request: Request) -> Response | None:
        try:
            answer = await self._answer(request)
        except Refused as refused:
            answer = text(str(refused), refused.status, refused.headers)
        except ConnectionError:
            raise
        except Exception:
            log.exception("%s %s", request.method, request.path)
            answer = text("Internal Server Error\n", 500)
        if answer is not None and answer.headers is None:
            answer.headers = []  # see HTTPServer's `audited`
        return answer

    async def _answer(self, request: Request) -> Response | None:
        path = unquote(request.path, errors="replace")
        if self._authn is not None:
            await self._judge(request, path)
        root, _, rest = path.lstrip("/").partition("/")
        if root == "healthz":
            return self._healthz(request)
        handler = self._added.get(path) or self._added.get(path.rstrip("/"))
        if handler is None:
            below = [each for each in self._prefixes if path == each or path.startswith(each.rstrip("/") + "/")]
            handler = self._prefixes[max(below, key=len)] if below else None
        if handler is not None:
            return await handler(request)
        route = self._routes.get(root)
        if route is None:
            raise Refused(404, "404 page not found\n")
        methods, serve = route
        if methods and request.method not in methods:
            raise Refused(405, "405: Method Not Allowed", [("Allow", ", ".join(methods))])
        query = parse_qs(request.query_string, keep_blank_values=True, errors="replace")
        call = Call(request, [part for part in rest.split("/") if part], query, self._source, self._runtime)
        if root == "logs":
            call.parts = rest.split("/")
        return await serve(call)

    async def _judge(self, request: Request, path: str) -> User:
        """Authenticate and authorize a request. Raises Refused."""
        assert self._authn is not None
        assert self._authz is not None
        try:
            user = await self._authn.authenticate(request)
        except (APIError, OSError, TimeoutError) as error:
            log.error("unable to authenticate a request: %s", error)
            user = None
        if user is None:
            raise Refused(401, "Unauthorized")
        verb, wanted = verb_of(request.method), subresources(path)
        for each in wanted:
            try:
                if await self._authz.allows(user, verb, each):
                    return user
            except (APIError, OSError, TimeoutError) as error:
                log.error("authorization of %r: %s", user.name, error)
                who = f"user={user.name}, verb={verb}, resource=nodes, subresource={each}"
                raise Refused(500, f"Authorization error ({who})") from None
        shown = f"[{' '.join(wanted)}]"
        raise Refused(403, f"Forbidden (user={user.name}, verb={verb}, resource=nodes, subresource(s)={shown})\n")

    def _streaming(self, serve: Route) -> Route:
        async def counted(call: Call) -> Response | None:
            self.streams += 1
            try:
                return await serve(call)
            finally:
                self.streams -= 1

        return counted

    async def _configz(self, call: Call) -> Response:
        return json(msgspec.json.encode({"kubeletconfig": self._source.configuration()}))

    async def _slis(self, request: Request) -> Response:
        return Response(self._checks.slis(), 200, PROMETHEUS, [])

    def _healthz(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "405: Method Not Allowed", [("Allow", "GET, HEAD")])
        failed = {
            f"task-{name.replace(' ', '-')}": partial(str, why) for name, why in self._source.failed_tasks().items()
        }
        self._checks.paths = {"healthz": {**self._fixed, **failed}}
        found = self._checks.answer(request.path, request.query_string)
        if found is None:
            raise Refused(404, "404 page not found\n")
        return text(found[1], found[0])


def _disabled(words: str) -> Route:
    async def refuse(call: Call) -> Response:
        raise Refused(405, words)

    return refuse


def _malformed(status: int, message: str) -> Response:
    return text(f"{message}\n", status)
