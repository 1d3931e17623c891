"""Services and EndpointSlices in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice


def service(name: str = "web", ip: str = "10.96.0.10", port: int = 80, **more: Any) -> Service:
    """A Service with one port; `more` are fields of its spec, or `status`, `labels` or `annotations`."""
    metadata = {"namespace": "default", "name": name}
    for each in ("labels", "annotations"):
        metadata |= {each: more.pop(each)} if each in more else {}
    status = more.pop("status", {})
    protocol = more.pop("protocol", "TCP")
    ports = [{"port": port, "protocol": protocol} | ({"nodePort": more.pop("nodePort")} if "nodePort" in more else {})]
    spec = {"clusterIP": ip, "clusterIPs": [ip], "type": "ClusterIP", "ports": ports} | more
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Service)


def endpoint(address: str, **more: Any) -> dict[str, Any]:
    """An endpoint that is ready, unless `more` says otherwise."""
    return {"addresses": [address], "conditions": {"ready": True, "serving": True}, **more}


def terminating(address: str, serving: bool = True, **more: Any) -> dict[str, Any]:
    return endpoint(address, conditions={"ready": False, "serving": serving, "terminating": True}, **more)


def endpoint_slice(*endpoints: str | dict[str, Any], of: str = "web", port: int = 8080, **more: Any) -> EndpointSlice:
    """A slice of a Service's endpoints."""
    value = {
        "metadata": {
            "namespace": "default",
            "name": more.pop("name", f"{of}-1"),
            "labels": {"kubernetes.io/service-name": of},
        },
        "addressType": "IPv4",
        "endpoints": [endpoint(each) if isinstance(each, str) else each for each in endpoints],
        "ports": [{"name": "", "port": port, "protocol": more.pop("protocol", "TCP")}],
        **more,
    }
    return msgspec.convert(value, EndpointSlice)
