"""The controller against a real API server: it follows Ingresses and Secrets, writes statuses and events."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from ingress.proxy import Answer, Client, echo

import tools
from pybernetes import pki
from pybernetes.api import errors
from pybernetes.api.core.v1 import Event, Namespace, Secret, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.networking.v1 import Ingress, IngressClass
from pybernetes.client import client as api
from pybernetes.client import config
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.cluster.addresses import this_machine
from pybernetes.ingress.controller import IngressController
from pybernetes.ingress.metrics import Metrics

_numbers = itertools.count()


class Running:
    """A controller that runs, and a namespace of the test's own."""

    def __init__(self, client: api.Client, controller: IngressController, port: int, tls_port: int) -> None:
        self.client, self.controller, self.port, self.tls_port = client, controller, port, tls_port
        self.namespace = f"ingress-{next(_numbers)}"
        self.servers: list[asyncio.Server] = []

    async def create(self, kind: type[Any], name: str, **content: Any) -> Any:
        made = msgspec.convert({"metadata": {"name": name, "namespace": self.namespace}, **content}, kind)
        return await self.client.create(made)

    async def ingress(self, name: str, host: str, service: str = "web", **spec: Any) -> None:
        backend = {"service": {"name": service, "port": {"name": "web"}}}
        rules = [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
        await self.create(Ingress, name, spec={"ingressClassName": "pybernetes", "rules": rules, **spec})

    async def serve(self, name: str = "web") -> None:
        """A Service with one endpoint, a server of this machine."""
        address = this_machine()
        server = await asyncio.start_server(echo(name), address, 0)
        self.servers.append(server)
        port = server.sockets[0].getsockname()[1]
        await self.create(Service, name, spec={"ports": [{"name": "web", "port": 80}]})
        made = EndpointSlice(
            metadata=ObjectMeta(name=name, namespace=self.namespace, labels={"kubernetes.io/service-name": name}),
            address_type="IPv4",
        )
        rest = {"ports": [{"name": "web", "port": port}], "endpoints": [{"addresses": [address]}]}
        whole = {**msgspec.to_builtins(made), **rest}
        await self.client.create(msgspec.convert(whole, EndpointSlice))

    async def ask(self, host: str, tls: ssl.SSLContext | None = None) -> Answer:
        port = self.tls_port if tls else self.port
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname=host if tls else None
        )
        try:
            return await Client(reader, writer).ask("/", host)
        finally:
            writer.close()

    async def until(self, condition: Callable[[], Awaitable[object]], what: str) -> None:
        async with asyncio.timeout(tools.PATIENCE):
            while True:
                with contextlib.suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
                    if await condition():
                        return
                await asyncio.sleep(0.02)
        raise AssertionError(what)

    async def messages(self, name: str, reason: str = "InvalidConfiguration") -> list[str]:
        found = await self.client.list(Event, self.namespace)
        return [
            each.message or ""
            for each in found.items or ()
            if each.involved_object.name == name and each.reason == reason
        ]

    async def status(self, name: str) -> list[str | None]:
        found = await self.client.get(Ingress, name, self.namespace)
        balancer = found.status.load_balancer if found.status else None
        return [each.ip or each.hostname for each in (balancer.ingress if balancer else None) or ()]


@contextlib.asynccontextmanager
async def running(cluster: tools.ApiServer, **more: Any) -> AsyncIterator[Running]:
    clock = SystemClock()
    port, tls_port = tools.free_port(), tools.free_port()
    async with api.Client(config.load(cluster.kubeconfig)) as client:
        informers = InformerFactory(client)
        events = EventBroadcaster(client, clock)
        ports = {"http_port": port, "https_port": tls_port}
        options = {"addresses": ["127.0.0.1"], "drain": 0.1, **ports, **more}
        controller = IngressController(client, informers, events, clock, Metrics(), **options)
        made = Running(client, controller, port, tls_port)
        await client.create(Namespace(metadata=ObjectMeta(name=made.namespace)))
        with contextlib.suppress(errors.AlreadyExists):
            spec = {"controller": "pybernetes.io/ingress"}
            await client.create(msgspec.convert({"metadata": {"name": "pybernetes"}, "spec": spec}, IngressClass))
        work = asyncio.create_task(controller.run())
        try:
            await controller.started.wait()
            yield made
        finally:
            work.cancel()
            await asyncio.wait([work])
            for ingress in (await client.list(Ingress, made.namespace)).items or ():
                await client.delete(Ingress, ingress.metadata.name, made.namespace)
            await informers.stop()
            for each in made.servers:
                each.close()


async def test_nothing_listens_until_the_first_ingress_of_the_class_and_its_status_says_where(
    cluster: tools.ApiServer,
) -> None:
    async with running(cluster, publish=["192.0.2.80"]) as r:
        await r.create(Ingress, "foreign", spec={"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}})
        await r.serve()
        assert not r.controller.serving.is_set()
        with contextlib.suppress(ConnectionRefusedError):
            await r.ask("web.example")
            raise AssertionError("it listens")
        await r.ingress("web", "web.example")

        async def answered() -> bool:
            return (await r.ask("web.example")).name == "web"

        await r.until(answered, "it is served")

        async def told() -> bool:
            return await r.status("web") == ["192.0.2.80"]

        await r.until(told, "its status says where")
        assert await r.status("foreign") == []
        assert len(await r.messages("web", "Sync")) == 1


async def test_changes_are_followed_while_it_serves(cluster: tools.ApiServer) -> None:
    async with running(cluster) as r:
        await r.serve()
        await r.ingress("web", "web.example")
        await r.ingress("late", "late.example", service="later")

        def status(host: str, want: int) -> Callable[[], Awaitable[object]]:
            async def so() -> bool:
                return (await r.ask(host)).status == want

            return so

        await r.until(status("web.example", 200), "it is served")
        await r.until(status("late.example", 503), "it has no Service")
        await r.serve("later")
        await r.until(status("late.example", 200), "its Service is there")
        await r.client.delete(EndpointSlice, "later", r.namespace)
        await r.until(status("late.example", 503), "its endpoint is gone")
        rules = [{"op": "replace", "path": "/spec/rules/0/host", "value": "new.example"}]
        await r.client.patch(Ingress, "web", rules, r.namespace, type="json")
        await r.until(status("new.example", 200), "it has another host")
        assert (await r.ask("web.example")).status == 404

        async def told() -> bool:
            return await r.status("web") == ["localhost"]

        await r.until(told, "its status says where")
        await r.client.patch(Ingress, "web", {"spec": {"ingressClassName": "other"}}, r.namespace)
        await r.until(status("new.example", 404), "it is another controller's")

        async def cleared() -> bool:
            return await r.status("web") == []

        await r.until(cleared, "its status is empty")


async def test_certificates_of_secrets_are_served_and_problems_are_events(cluster: tools.ApiServer) -> None:
    authority = pki.create_authority("test")
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())

    def pair(host: str) -> dict[str, str]:
        made = pki.issue_server(authority, host, [host])
        return {"tls.crt": made.certificate_pem.decode(), "tls.key": made.key_pem.decode()}

    async with running(cluster) as r:
        await r.serve()
        tls = [{"hosts": ["web.example"], "secretName": "cert"}]
        await r.ingress("web", "web.example", tls=tls)

        async def missing() -> bool:
            found = await r.messages("web")
            return any("there is no secret cert of type kubernetes.io/tls" in each for each in found)

        await r.until(missing, "an event says that there is no Secret")
        await r.create(Secret, "cert", type="kubernetes.io/tls", stringData=pair("web.example"))

        async def secure() -> bool:
            return (await r.ask("web.example", trusting)).name == "web"

        await r.until(secure, "it is served by TLS")
        assert (await r.ask("web.example")).status == 308
        bad = {"tls.crt": "nonsense", "tls.key": "nonsense"}
        await r.client.patch(Secret, "cert", {"stringData": bad}, r.namespace)

        async def broken() -> bool:
            return any("has no usable certificate" in each for each in await r.messages("web"))

        await r.until(broken, "an event says that the Secret is broken")
        await r.client.patch(Secret, "cert", {"stringData": pair("web.example")}, r.namespace)
        await r.until(secure, "it is served again")


async def test_an_error_in_an_ingress_is_reported_once_and_the_rest_is_served(cluster: tools.ApiServer) -> None:
    async with running(cluster) as r:
        await r.serve()
        await r.ingress("web", "web.example")
        prefix = "nginx.ingress.kubernetes.io"
        notes = {f"{prefix}/use-regex": "true", f"{prefix}/server-snippet": "x", f"{prefix}/proxy-body-size": "big"}
        backend = {"service": {"name": "web", "port": {"name": "web"}}}
        paths = [
            {"path": "/(", "pathType": "ImplementationSpecific", "backend": backend},
            {"path": "/", "pathType": "Prefix", "backend": backend},
        ]
        spec = {"ingressClassName": "pybernetes", "rules": [{"host": "odd.example", "http": {"paths": paths}}]}
        metadata = {"name": "odd", "namespace": r.namespace, "annotations": notes}
        await r.client.create(msgspec.convert({"metadata": metadata, "spec": spec}, Ingress))

        async def served() -> bool:
            return (await r.ask("odd.example")).name == "web"

        await r.until(served, "the good path is served")

        async def told() -> bool:
            return len(await r.messages("odd")) == 3

        await r.until(told, "three events")
        await r.client.patch(Ingress, "odd", {"metadata": {"annotations": {"other": "1"}}}, r.namespace)
        await r.ingress("next", "next.example")

        async def next_is_served() -> bool:
            return (await r.ask("next.example")).name == "web"

        await r.until(next_is_served, "others are served")
        assert len(await r.messages("odd")) == 3
