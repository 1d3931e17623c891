"""Drivers of dynamic resources that have registered, and the two calls that the kubelet makes to them (v1, v1beta1)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from pybernetes.component.unix_address import UnixAddress
from pybernetes.protofile import Proto, parse

from ..plugins.registry import OPTIONS, RegistrationError
from .claims import ClaimError

TYPE: Final = "DRAPlugin"
CALL_SECONDS: Final = 45.0
"""How long a driver may take; upstream's."""
SERVICES: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""The services of the known versions, the best first."""
log = logging.getLogger(__name__)

Took = Callable[[str, str, str, float], None]
"""Driver, method, gRPC status, seconds."""


@cache
def proto(version: str) -> Proto:
    """Messages and calls of a version of the interface."""
    text = Path(__file__).with_name("dra.proto").read_text(encoding="utf-8")
    return parse(text.replace("apis.dra.v1;", f"apis.dra.{version};"), f"dra.proto ({version})")


class Driver:
    """A connection to one driver's socket."""

    def __init__(self, name: str, endpoint: str, service: str, took: Took) -> None:
        self.name, self.endpoint, self.service = name, endpoint, service
        self._proto = proto(service.partition(".")[0])
        self._took = took
        self._address = UnixAddress(endpoint)
        self._channel = grpc.aio.insecure_channel(f"unix://{self._address.path}", OPTIONS)

    async def call(self, name: str, claims: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
        """Call NodePrepareResources or NodeUnprepareResources for claims (namespace, uid, name); answers by uid."""
        method = next(each for each in self._proto.methods if each.name == name)
        make = self._proto.names["Claim"]
        request = method.request(claims=[make(namespace=space, uid=uid, name=claim) for space, uid, claim in claims])
        try:
            response = await self._invoke(method, method.path, request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise _failure(name, error) from None
            try:  # drivers built with older libraries name the service without its package
                response = await self._invoke(method, f"/{self.service}/{name}", request)
            except grpc.aio.AioRpcError as again:
                raise _failure(name, again) from None
        return dict(response.claims)

    async def _invoke(self, method: Any, path: str, request: Any) -> Any:
        call = self._channel.unary_unary(
            path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString
        )
        begun, code = time.monotonic(), "OK"
        try:
            return await call(request, timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            code = error.code().name.title().replace("_", "")
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The call was cancelled by closing its channel, not this task.
            raise ClaimError(f"{method.name}: DRA driver {self.name} has been unregistered") from None
        except grpc.aio.UsageError:
            raise ClaimError(f"{method.name}: DRA driver {self.name} has been unregistered") from None
        finally:
            self._took(self.name, path, code, time.monotonic() - begun)

    async def close(self) -> None:
        """Hang up."""
        try:
            await self._channel.close()
        finally:
            self._address.close()


class Drivers:
    """The drivers that are registered (`plugins.registry.Handler`); of two with one name the newer one is used."""

    def __init__(self, changed: Callable[[str], None], took: Took) -> None:
        """`changed(name)` is called when a driver has come or gone."""
        self._changed, self._took = changed, took
        self._drivers: dict[str, list[Driver]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def register(self, name: str, endpoint: str, versions: Sequence[str]) -> None:
        """Take a driver; raises `RegistrationError`."""
        service = next((each for each in SERVICES if each in versions), None)
        if service is None:
            offered, known = (" ".join(f'"{each}"' for each in group) for group in (versions, SERVICES))
            raise RegistrationError(
                f"invalid supported gRPC versions of DRA driver plugin {name} at endpoint {endpoint}: none of services "
                f"supported by the plugin ([{offered}]) are supported by the kubelet ([{known}])"
            )
        present = self._drivers.get(name, [])
        if any(each.endpoint == endpoint for each in present):
            raise RegistrationError(f"endpoint {endpoint} already registered for DRA driver plugin {name}")
        try:
            driver = Driver(name, endpoint, service, self._took)
        except OSError as error:
            raise RegistrationError(f"DRA driver {name}: endpoint {endpoint}: {error.strerror}") from None
        self._drivers.setdefault(name, present).append(driver)
        log.info("registered DRA driver %s at %s (%s)", name, endpoint, service)
        self._changed(name)

    def unregister(self, name: str, endpoint: str) -> None:
        """A driver has gone."""
        present = self._drivers.get(name, [])
        for driver in [each for each in present if each.endpoint == endpoint]:
            present.remove(driver)
            task = asyncio.get_running_loop().create_task(driver.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            log.info("unregistered DRA driver %s at %s", name, endpoint)
        if not present:
            self._drivers.pop(name, None)
        self._changed(name)

    def get(self, name: str) -> Driver:
        """The driver of that name; `ClaimError` if there is none."""
        present = self._drivers.get(name)
        if not present:
            raise ClaimError(f"DRA driver {name} is not registered")
        return present[-1]

    def names(self) -> set[str]:
        """The registered drivers."""
        return set(self._drivers)


def _failure(name: str, error: grpc.aio.AioRpcError) -> ClaimError:
    code = error.code().name.title().replace("_", "")
    return ClaimError(f"{name}: rpc error: code = {code} desc = {error.details()}")
