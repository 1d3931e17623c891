"""A driver of dynamic resources as vendors write it, small enough to copy.

It registers at a socket in the kubelet's `plugins_registry`, serves v1 and v1beta1 of the DRAPlugin interface at the
same socket, and writes a CDI file for each claim that it prepares: an environment variable, a device and a mount.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from pybernetes.kubelet.dra import plugin
from pybernetes.kubelet.plugins import registry

KIND = "sample.example.com/claim"


class SampleDriver:
    """`async with` starts and stops it. `cdi`: where runtimes look for CDI files."""

    def __init__(self, name: str, folder: Path, cdi: Path, *, versions: Sequence[str] = plugin.SERVICES) -> None:
        self.name, self.cdi, self.versions = name, cdi, list(versions)
        self.socket = folder / f"{name}-reg.sock"
        self.devices: dict[str, list[tuple[str, str]]] = {}
        """By claim (name): request and device of each result of its allocation; one device for the request `gpu`
        where nothing is given."""
        self.extra_edits: dict[str, Any] = {}
        self.calls: list[str] = []
        self.registered: list[tuple[bool, str]] = []
        self.refuse = ""
        self._server: Any = None

    async def __aenter__(self) -> SampleDriver:
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._server = grpc.aio.server()
        registration = {
            "GetInfo": (registry.method("GetInfo"), self._info),
            "NotifyRegistrationStatus": (registry.method("NotifyRegistrationStatus"), self._notified),
        }
        self._serve("pluginregistration.Registration", registration)
        for service in self.versions:
            version = service.partition(".")[0]
            if service not in plugin.SERVICES:
                continue
            proto = plugin.proto(version)
            handlers = {"NodePrepareResources": self._prepare, "NodeUnprepareResources": self._unprepare}
            calls = {each.name: (each, handlers[each.name](proto)) for each in proto.methods}
            self._serve(f"{proto.package}.DRAPlugin", calls)
        self._server.add_insecure_port(f"unix://{self.socket}")
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)
        self.socket.unlink(missing_ok=True)

    def _serve(self, service: str, calls: dict[str, Any]) -> None:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                handler,
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
            for name, (method, handler) in calls.items()
        }
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])

    async def _info(self, request: Any, context: Any) -> Any:
        make = registry.proto().names["PluginInfo"]
        return make(type=plugin.TYPE, name=self.name, supported_versions=self.versions)

    async def _notified(self, request: Any, context: Any) -> Any:
        self.registered.append((request.plugin_registered, request.error))
        return registry.proto().names["RegistrationStatusResponse"]()

    def _prepare(self, proto: Any) -> Any:
        async def prepare(request: Any, context: Any) -> Any:
            response = proto.names["NodePrepareResourcesResponse"]()
            for claim in request.claims:
                self.calls.append(f"{proto.package.rpartition('.')[2]} prepare {claim.name}")
                result = response.claims[claim.uid]
                if self.refuse:
                    result.error = self.refuse
                    continue
                found = self.devices.get(claim.name, [("gpu", "gpu-0")])
                self._write(claim.uid, [device for _, device in found])
                for asked, device in found:
                    ids = [f"{KIND}={claim.uid}-{device}"]
                    result.devices.add(request_names=[asked], pool_name="pool", device_name=device, cdi_device_ids=ids)
            return response

        return prepare

    def _unprepare(self, proto: Any) -> Any:
        async def unprepare(request: Any, context: Any) -> Any:
            response = proto.names["NodeUnprepareResourcesResponse"]()
            for claim in request.claims:
                self.calls.append(f"{proto.package.rpartition('.')[2]} unprepare {claim.name}")
                response.claims[claim.uid].error = self.refuse
                self._file(claim.uid).unlink(missing_ok=True)
            return response

        return unprepare

    def _file(self, uid: str) -> Path:
        return self.cdi / f"sample-{uid}.json"

    def _write(self, uid: str, devices: list[str]) -> None:
        self.cdi.mkdir(parents=True, exist_ok=True)
        spec = {
            "cdiVersion": "0.6.0",
            "kind": KIND,
            "containerEdits": {"env": ["SAMPLE_DRIVER=" + self.name]},
            "devices": [
                {
                    "name": f"{uid}-{device}",
                    "containerEdits": {
                        "env": [f"SAMPLE_{device.replace('-', '_').upper()}={uid}"],
                        "deviceNodes": [{"path": f"/dev/{device}", "hostPath": "/dev/full"}],
                        "mounts": [
                            {"hostPath": "/etc/hostname", "containerPath": f"/{device}", "options": ["ro", "rbind"]}
                        ],
                        **self.extra_edits,
                    },
                }
                for device in devices
            ],
        }
        self._file(uid).write_text(json.dumps(spec))
