"""Serves the Ingresses whose class is this controller's.

Woken by: Ingresses, IngressClasses, the Services, EndpointSlices and TLS Secrets that they name. Writes: the status of
its Ingresses (where they are served), and events about what is wrong with them, once for each change. Until there is
an Ingress of its own it follows Ingresses and classes only: the proxy is loaded, and ports are opened, for the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pybernetes.api import errors
from pybernetes.api.core.v1 import Secret, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.networking.v1 import Ingress, IngressClass
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of
from pybernetes.component.tasks import Tasks

if TYPE_CHECKING:
    from .frontend import Timeouts
    from .listeners import Listeners
    from .metrics import Metrics
    from .rules import Backend, Compiled

CONTROLLER = "pybernetes.io/ingress"
"""`spec.controller` of IngressClasses that are ours."""
CLASS_ANNOTATION = "kubernetes.io/ingress.class"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
BY_SERVICE = "ingress backends"
SETTLE = 0.01
"""Seconds in which further changes are waited for."""
STATUS_RETRY = 5.0
LONGEST_SLEEP = 86400.0
log = logging.getLogger(__name__)


class IngressController:
    """The controller and its proxy."""

    def __init__(
        self,
        client: Client,
        informers: InformerFactory,
        events: EventBroadcaster,
        clock: Clock,
        metrics: Metrics,
        *,
        addresses: Sequence[str],
        http_port: int,
        https_port: int,
        sockets: Sequence[socket.socket] = (),
        publish: Sequence[str] = (),
        verbosity: int = 0,
        timeouts: Timeouts | None = None,
        drain: float = 10.0,
    ) -> None:
        """`sockets` listen already. `publish`: addresses for the status; empty: those served but for loopback ones."""
        self.started = asyncio.Event()
        self.serving = asyncio.Event()
        """Set when ports are open."""
        self._client, self._informers, self._clock, self._metrics = client, informers, clock, metrics
        self._events, self._recorder = events, events.recorder("ingress-controller")
        self._sockets = sockets
        self._addresses, self._http_port, self._https_port = addresses, http_port, https_port
        self._publish, self._verbosity, self._timeouts, self._drain = publish, verbosity, timeouts, drain
        self._ingresses = informers.informer(Ingress)
        self._classes = informers.informer(IngressClass)
        self._dirty: set[Key] = set()
        self._unwritten: set[Key] = set()
        """Ingresses whose status is to be looked at."""
        self._certificates_due = True
        self._wake, self._status_wake = asyncio.Event(), asyncio.Event()
        self._problems: dict[Key, tuple[str, ...]] = {}
        self._secret_problems: dict[Key, list[str]] = {}
        self._tasks = Tasks("ingress")

    async def run(self) -> None:
        """Serve until cancelled; then finish the requests in flight."""
        handlers: list[tuple[Any, Any]] = [
            (
                self._ingresses,
                self._ingresses.add_handler(self._ingress_seen, self._ingress_updated, self._ingress_seen),
            ),
            (self._classes, self._classes.add_handler(*[lambda *_: self._all_dirty()] * 3)),
        ]
        self._informers.start()
        self._tasks.start("events", self._events.run)
        try:
            await self._ingresses.wait_synced()
            await self._classes.wait_synced()
            self.started.set()
            while not any(self._is_ours(each) for each in self._ingresses.items()):
                self._dirty.clear()
                self._wake.clear()
                await self._wake.wait()
            await self._serve(handlers)
        finally:
            for informer, handler in handlers:
                informer.forget_handler(handler)
            await self._tasks.stop()

    async def _serve(self, handlers: list[tuple[Any, Any]]) -> None:
        from .certificates import TYPE, Certificates
        from .endpoints import Endpoints
        from .forwarding import Forwarder
        from .frontend import Server
        from .listeners import Listeners
        from .routes import Routes
        from .upstream import Pool

        self._services, self._slices = self._informers.informer(Service), self._informers.informer(EndpointSlice)
        self._slices.add_index(BY_SERVICE, _service_names)
        self._secrets = self._informers.informer(Secret, field_selector=f"type={TYPE}")
        self._routes, self._pool = Routes(), Pool()
        self._endpoints = Endpoints(
            lambda namespace, name: self._services.get(Key(namespace, name)),
            lambda namespace, name: self._slices.by_index(BY_SERVICE, f"{namespace}/{name}"),
        )
        self._certificates = Certificates(lambda key: self._secrets.get(key), self._clock.now)
        forwarder = Forwarder(
            self._routes,
            self._endpoints,
            self._pool,
            self._metrics,
            has_certificate=self._certificates.covers,
            https_port=lambda: self._https_port,
            verbosity=self._verbosity,
        )
        server = Server(
            forwarder.serve, timeouts=self._timeouts, refused=lambda status: self._metrics.refused.inc(str(status))
        )
        self._metrics.gauge("connections", "Connections of clients.", lambda: len(server.connections))
        self._metrics.gauge("idle_endpoint_connections", "Connections kept for later.", lambda: self._pool.idle)
        self._metrics.gauge("ingresses", "Ingresses that are served.", lambda: len(self._routes))
        handlers += [
            (
                self._services,
                self._services.add_handler(
                    self._service_seen, lambda _, new: self._service_seen(new), self._service_seen
                ),
            ),
            (self._slices, self._slices.add_handler(self._slice_seen, self._slice_updated, self._slice_seen)),
            (self._secrets, self._secrets.add_handler(*[lambda *_: self._secrets_changed()] * 3)),
        ]
        self._informers.start()
        for informer in (self._services, self._slices, self._secrets):
            await informer.wait_synced()
        self._all_dirty()
        self._sync()  # all listers are synced before the first request is served
        ports = (self._http_port, self._https_port)
        listeners = Listeners(server, self._certificates, self._addresses, *ports, self._sockets)
        self._tasks.start("listeners", lambda: listeners.run(lambda: self._listening(listeners)))
        self._tasks.start("status", lambda: self._write_statuses(listeners))
        try:
            while True:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._until_expiry()):
                        await self._wake.wait()
                        await asyncio.sleep(SETTLE)
                self._sync()
        finally:
            listeners.close()
            await server.drain(self._drain)
            self._pool.close()

    def _listening(self, listeners: Listeners) -> None:
        if listeners.addresses:
            self.serving.set()
        self._unwritten.update(key for key in map(key_of, self._ingresses.items()))
        self._status_wake.set()

    def _until_expiry(self) -> float:
        at = self._certificates.next_expiry()
        return LONGEST_SLEEP if at is None else min(LONGEST_SLEEP, max(1.0, at - self._clock.now()))

    # -- what changes

    def _sync(self) -> None:
        """Follow all that has changed. One Ingress that cannot be compiled stops no other one."""
        from .rules import compile_ingress

        dirty, self._dirty = self._dirty, set()
        for key in dirty:
            ingress = self._ingresses.get(key)
            if ingress is None or not self._is_ours(ingress):
                if self._routes.get(key) is not None:
                    self._routes.remove(key)
                    self._metrics.forget(f"{key.namespace}/{key.name}")
                    if ingress is not None:
                        self._unwritten.add(key)
                self._problems.pop(key, None)
                continue
            try:
                self._routes.put(compile_ingress(ingress))
            except Exception:
                log.exception("Ingress %s/%s cannot be served", key.namespace, key.name)
                self._routes.remove(key)
            self._unwritten.add(key)
        if dirty:
            self._certificates_due = True
            self._endpoints.forget(self._backends())
        if self._certificates_due:
            self._certificates_due = False
            self._secret_problems = self._certificates.update(self._routes.certificates())
        for key in dirty | self._secret_problems.keys() | self._problems.keys():
            self._tell(key)
        wanted = self._endpoints.all()
        self._pool.retire(lambda address: address[:2] not in wanted)
        if self._unwritten:
            self._status_wake.set()

    def _backends(self) -> set[Backend]:
        found = set()
        for ingress in self._ingresses.items():
            compiled = self._routes.get(key_of(ingress))
            for rule in _rules(compiled) if compiled else ():
                if rule.backend is not None:
                    found.add(rule.backend)
        return found

    def _tell(self, key: Key) -> None:
        """Events of what is wrong with an Ingress, if that is not what was wrong before."""
        compiled, ingress = self._routes.get(key), self._ingresses.get(key)
        if compiled is None or ingress is None:
            return
        problems = (*compiled.problems, *self._secret_problems.get(key, ()))
        before = self._problems.get(key)
        for problem in problems:
            if before is None or problem not in before:
                self._recorder.event(ingress, "Warning", "InvalidConfiguration", problem)
        if before is None:
            self._recorder.event(ingress, "Normal", "Sync", "Scheduled for sync")
        self._problems[key] = problems

    def _ingress_seen(self, ingress: Ingress) -> None:
        self._dirty.add(key_of(ingress))
        self._wake.set()

    def _ingress_updated(self, old: Ingress, new: Ingress) -> None:
        if old.spec != new.spec or _annotations(old) != _annotations(new):
            self._ingress_seen(new)
        elif old.status != new.status:
            self._unwritten.add(key_of(new))
            self._status_wake.set()

    def _all_dirty(self) -> None:
        self._dirty.update(map(key_of, self._ingresses.items()))
        self._wake.set()

    def _service_seen(self, service: Service) -> None:
        key = key_of(service)
        self._endpoints.changed(key.namespace, key.name)

    def _slice_seen(self, changed: EndpointSlice) -> None:
        for name in _service_names(changed):
            namespace, _, service = name.partition("/")
            if self._endpoints.changed(namespace, service):
                self._wake.set()  # connections to those that are gone are closed

    def _slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> None:
        self._slice_seen(old)
        self._slice_seen(new)

    def _secrets_changed(self) -> None:
        self._certificates_due = True
        self._wake.set()

    def _is_ours(self, ingress: Ingress) -> bool:
        """Whether its class is: named in the spec, or by the old annotation."""
        spec = ingress.spec
        name = (spec.ingress_class_name if spec else None) or _annotations(ingress).get(CLASS_ANNOTATION, "")
        found = self._classes.get(Key("", name)) if name else None
        return found is not None and found.spec is not None and found.spec.controller == CONTROLLER

    # -- status

    async def _write_statuses(self, listeners: Listeners) -> None:
        """Let Ingresses say where they are served, until cancelled."""
        while True:
            self._status_wake.clear()
            if not self._unwritten:
                await self._status_wake.wait()
            if not self.serving.is_set():
                await self.serving.wait()
            failed = set()
            while self._unwritten:
                key = self._unwritten.pop()
                try:
                    await self._write_status(key, self._published(listeners))
                except (errors.APIError, OSError, TimeoutError) as error:
                    log.warning("the status of Ingress %s/%s cannot be written: %s", key.namespace, key.name, error)
                    failed.add(key)
            if failed:
                await asyncio.sleep(STATUS_RETRY)
                self._unwritten |= failed

    async def _write_status(self, key: Key, published: list[dict[str, Any]]) -> None:
        ingress = self._ingresses.get(key)
        if ingress is None:
            return
        balancer = ingress.status.load_balancer if ingress.status else None
        rows = [{"ip": each.ip, "hostname": each.hostname} for each in (balancer.ingress if balancer else None) or ()]
        present = [{name: value for name, value in row.items() if value} for row in rows]
        ours = self._is_ours(ingress)
        if (present == published) if ours else (present != published):
            return
        patch = {"status": {"loadBalancer": {"ingress": published} if ours else None}}
        with contextlib.suppress(errors.NotFound):
            await self._client.patch(Ingress, key.name, patch, key.namespace, subresource="status")

    def _published(self, listeners: Listeners) -> list[dict[str, Any]]:
        outside = list(self._publish) or [each for each in listeners.addresses if not _loopback(each)]
        return [{"ip": each} for each in outside] or [{"hostname": "localhost"}]


def _rules(compiled: Compiled) -> list[Any]:
    found = [rule for rules in compiled.hosts.values() for rule in rules]
    return [*found, compiled.default] if compiled.default is not None else found


def _annotations(ingress: Ingress) -> dict[str, str]:
    return (ingress.metadata.annotations if ingress.metadata else None) or {}


def _service_names(found: EndpointSlice) -> list[str]:
    metadata = found.metadata
    name = ((metadata.labels if metadata else None) or {}).get(SERVICE_NAME_LABEL)
    return [f"{(metadata.namespace if metadata else None) or ''}/{name}"] if name else []


def _loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "0.0.0.0", "::")
