"""A simulated cluster from the inside: its components, what happens to them, and what is checked on the way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from pybernetes.api import errors
from pybernetes.client.client import Client
from pybernetes.client.transport import JSON
from pybernetes.simulation.faults import Plan
from pybernetes.simulation.invariants import Check, Object, checks
from pybernetes.store.base import Event, Watch
from pybernetes.store.memory import MemoryStore
from pybernetes.testing.client import DISCOVERY, FIELD_MANAGER, PATCHES, Resource, objects_of, query_of
from pybernetes.testing.control_plane import ADMIN, HOST, PORT, ControlPlane
from pybernetes.testing.control_plane import Component as ClusterComponent
from pybernetes.testing.loop import ClusterLoop
from pybernetes.trace.text import excerpt
from pybernetes.trace.tree import Spans, begun_by_users

SHOWN = 60
"""Writes that the report of a failed run shows, the last ones."""
TRACE_LINES = 100
LEASES = "/registry/leases/"
TRIES = 240
"""Attempts of the scenario's requests, twice a second: the API server may be down for a while."""
LOOK = 0.25
"""Virtual seconds between looks at a condition."""
API_SERVER = "kube-apiserver"
Controller = Callable[[Client], Coroutine[Any, Any, None]]


class Violated(AssertionError):
    """Something that always holds did not."""


class _User:
    """The user's controller as a worker; it counts as started at once."""

    def __init__(self, run: Controller, client: Client) -> None:
        self.started = asyncio.Event()
        self.started.set()
        self._run, self._client = run, client

    async def run(self) -> None:
        await self._run(self._client)


class Simulation:
    """One run of a scenario. Time is virtual: `until` and `sleep` take none of the machine's."""

    def __init__(self, control_plane: ControlPlane, seed: int, plan: Plan) -> None:
        self.seed = seed
        self._control_plane = control_plane
        self._plan = plan
        self._loop = asyncio.get_running_loop()
        self._client = control_plane.client(ADMIN, "scenario")
        self._components: dict[str, ClusterComponent] = dict(control_plane.components)
        self._checks: list[Check] = checks()
        self._resources: list[Resource] = []
        self._writes = hashlib.sha256()
        self._shown: deque[str] = deque(maxlen=SHOWN)
        self._count = self._revision = 0
        self._violation: Violated | None = None
        self._began = self._loop.time()

    # -- the scenario's side

    def start(self, controller: Controller, name: str = "") -> None:
        """Start a controller of the user's, a coroutine function of a client. It may crash and start again."""
        name = name or getattr(controller, "__name__", "controller")
        component = ClusterComponent(
            name, lambda client: _User(controller, client), lambda: self._control_plane.client(ADMIN, name)
        )
        self._components[name] = component
        component.start()

    def always(self, check: Check) -> None:
        """Check every write: a function of the object before and after it that returns what is wrong, or None."""
        self._checks.append(check)

    @property
    def server(self) -> str:
        """The URL of the API server, for clients of the user's own that connect by the event loop (aiohttp, httpx)."""
        return f"http://{HOST}:{PORT}"

    @property
    def token(self) -> str:
        """A bearer token that may do everything."""
        return self._control_plane.token(ADMIN)

    @property
    def time(self) -> float:
        """Virtual seconds since the beginning of the run."""
        return self._loop.time() - self._began

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    async def until(self, condition: Callable[[], Awaitable[Any]], within: float = 600.0) -> Any:
        """Wait until a coroutine function returns something true, and return that. AssertionError after the time."""
        deadline = self._loop.time() + within
        while True:
            try:
                if result := await condition():
                    return result
            except (errors.APIError, OSError):
                pass  # a fault: it is asked again
            if self._loop.time() >= deadline:
                name = getattr(condition, "__name__", "the condition")
                raise AssertionError(f"{name} does not hold after {within:g} s")
            await asyncio.sleep(LOOK)

    async def get(self, resource: str, name: str, namespace: str = "default") -> Object:
        """One object. errors.NotFound."""
        return await self._request("GET", (await self._resource(resource)).path(namespace, name))

    async def list(self, resource: str, namespace: str = "default", *, labels: str = "") -> Sequence[Object]:
        """The objects of a kind in a namespace; "" is all of them."""
        path = (await self._resource(resource)).path(namespace or None)
        found: Sequence[Object] = (await self._request("GET", path, query={"labelSelector": labels}))["items"]
        return found

    async def create(self, content: Object, namespace: str = "default") -> Object:
        """Create an object."""
        found = await self._of(content)
        return await self._request("POST", found.path(content["metadata"].get("namespace", namespace)), content)

    async def apply(self, content: Object | str, namespace: str = "default") -> None:
        """Server-side apply of an object, of YAML text or of a file of manifests."""
        for each in objects_of(content):
            metadata = each["metadata"]
            path = (await self._of(each)).path(metadata.get("namespace", namespace), metadata["name"])
            query = {"fieldManager": FIELD_MANAGER, "force": True}
            await self._request("PATCH", path, each, query=query, content_type="application/apply-patch+yaml")

    async def patch(self, resource: str, name: str, patch: Any, namespace: str = "default") -> Object:
        """A merge patch, or a JSON patch if it is a list."""
        path = (await self._resource(resource)).path(namespace, name)
        how = PATCHES["json" if isinstance(patch, list) else "merge"]
        return await self._request("PATCH", path, patch, content_type=how)

    async def delete(self, resource: str, name: str, namespace: str = "default", *, propagation: str = "") -> None:
        """Delete an object."""
        path = (await self._resource(resource)).path(namespace, name)
        await self._request("DELETE", path, query={"propagationPolicy": propagation})

    async def crash(self, name: str, down: float = 1.0) -> None:
        """Let a component crash, and start again after a time."""
        self._note(f"{name} crashes")
        if name == API_SERVER:
            await self._control_plane.restart_server(down)
            self._note(f"{name} works again")
            return
        component = self._components[name]
        await component.crash()
        await asyncio.sleep(down)
        self._note(f"{name} starts again")
        component.start()

    # -- the run

    async def run(self, scenario: Callable[[Simulation], Awaitable[None]]) -> dict[str, Any]:
        """Play the scenario; what came of it."""
        store = self._control_plane.server.store
        assert isinstance(store, MemoryStore)
        watch = store.watch("/registry/", after=await store.revision())
        watching = self._loop.create_task(self._follow(watch))
        assert isinstance(self._loop, ClusterLoop)
        self._loop.network.weather = _Weather(self._loop, self._plan, self.seed)
        playing = asyncio.ensure_future(scenario(self))
        self._playing = playing
        crashing = self._loop.create_task(self._crash_by_plan())
        error: str | None = None
        try:
            await playing
        except BaseException as failure:
            failure = self._violation or failure
            error = "".join(traceback.format_exception(failure, limit=-4)).strip()
        finally:
            crashing.cancel()
            await watch.close()
            await watching
        return {
            "error": error or (str(self._violation) if self._violation else None),
            "hash": self._writes.hexdigest(),
            "writes": self._count,
            "time": self.time,
            "shown": list(self._shown),
            "trace": self._trace() if error or self._violation else [],
        }

    def _trace(self) -> Sequence[str]:
        """The spans that led to the write that broke a rule, else those of the scenario and the user's controllers."""
        known = Spans(self._control_plane.server.traces.spans())
        culprit = known.writers.get(self._revision) if self._violation else None
        if culprit is None:
            return excerpt(begun_by_users(known.trees()), TRACE_LINES)
        root = known.root_of(culprit)
        return excerpt(known.trees(lambda span: span is root), TRACE_LINES)

    async def _crash_by_plan(self) -> None:
        for crash in self._plan.crashes:
            await asyncio.sleep(max(0.0, crash.at - self.time))
            names = sorted((*self._components, API_SERVER))
            await self.crash(names[crash.component % len(names)], crash.down)

    async def _follow(self, watch: Watch) -> None:
        async for events in watch:
            self._check(events)

    def _check(self, events: Sequence[Event]) -> None:
        for event in events:
            self._count += 1
            if event.revision < self._revision:
                self._violation = self._violation or Violated(f"revision {event.revision} after {self._revision}")
            self._revision = event.revision
            self._writes.update(f"{event.revision} {event.key} ".encode() + (event.value or b""))
            before = json.loads(event.previous.value) if event.previous else None
            after = json.loads(event.value) if event.value else None
            verb = "created" if before is None else "deleted" if after is None else "updated"
            if not event.key.startswith(LEASES):  # nodes and servers renew them all the time
                self._note(f"{event.revision} {verb} {event.key.removeprefix('/registry/')}")
            for check in self._checks:
                wrong = check(before, after)
                if wrong and self._violation is None:
                    self._violation = Violated(f"{check.__name__}: {wrong}")
                    self._playing.cancel()

    def _note(self, what: str) -> None:
        self._shown.append(f"{self.time:10.3f} s  {what}")

    async def _resource(self, word: str) -> Resource:
        for attempt in range(2):
            for each in self._resources:
                if word.lower() in each.names:
                    return each
            if attempt == 0:
                await self._discover()
        raise ValueError(f"the server has no resource {word!r}")

    async def _of(self, content: Object) -> Resource:
        for attempt in range(2):
            for each in self._resources:
                if (each.api_version, each.kind) == (content.get("apiVersion"), content.get("kind")):
                    return each
            if attempt == 0:
                await self._discover()
        raise ValueError(f"the server has no kind {content.get('kind')!r} in {content.get('apiVersion')!r}")

    async def _discover(self) -> None:
        found = []
        for path in ("/api", "/apis"):
            for group in (await self._request("GET", path, accept=DISCOVERY))["items"]:
                for version in group.get("versions", ()):
                    name = group["metadata"].get("name", "")
                    found += [Resource(name, version["version"], each) for each in version.get("resources", ())]
        self._resources = found

    async def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, Any] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """A request of the scenario; one whose connection breaks is sent again, unless that could do it twice."""
        target = f"{path}?{query_of(query)}" if query else path
        payload = b"" if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Content-Type": content_type}
        for _ in range(TRIES):
            try:
                answer = await self._client.transport.request(method, target, body=payload, headers=headers)
                result: Object = json.loads(answer.body)
                return result
            except (ConnectionError, TimeoutError):
                await asyncio.sleep(0.5)
            except errors.AlreadyExists:
                if method == "POST":  # it had been created, and the answer was lost
                    return await self._request("GET", f"{path}/{body['metadata']['name']}")
                raise
        raise AssertionError(f"{method} {path}: no answer after {TRIES} attempts")


class _Weather:
    """The plan's delays and faults of the network."""

    def __init__(self, loop: asyncio.AbstractEventLoop, plan: Plan, seed: int) -> None:
        self._loop, self._plan, self._seed = loop, plan, seed
        self._chances: dict[tuple[int, int], random.Random] = {}
        """For each direction of a connection: how many bytes others send changes nothing there."""
        self._began = loop.time()
        self._resets = deque(plan.resets)

    def delay(self, way: tuple[int, int]) -> float:
        plan = self._plan
        chance = self._chances.get(way)
        if chance is None:
            chance = self._chances[way] = random.Random(f"weather {self._seed} {way}")
        if plan.slow and chance.random() < plan.slow:
            return chance.uniform(0.0, plan.slow_delay)
        return chance.uniform(0.0, plan.delay) if plan.delay else 0.0

    def breaks(self) -> bool:
        if self._resets and self._loop.time() - self._began >= self._resets[0].at:
            self._resets.popleft()
            return True
        return False
