"""Extenders: helpers outside of the scheduler that are asked over HTTP, in upstream's words (`extender/v1`).

The bodies are what Go's encoder makes of types without field tags: `Pod`, `NodeNames`, `FailedNodes`. Answers are read
as Go's decoder reads them, in any case of letters, because extenders in other languages answer so.

Asking whether nodes are good changes nothing, so a connection that breaks is tried once more; binding is not.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.times import parse_duration
from pybernetes.client.config import Config
from pybernetes.client.http import ConnectionFailed, HTTPClient, Response

from .config.v1.types import Extender as ExtenderConfig
from .config.v1.types import ExtenderTLSConfig
from .framework.extender import ExtenderError, ExtenderFilterResult, Victims
from .framework.podinfo import PodInfo

DEFAULT_TIMEOUT: Final = 5.0
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_encode = msgspec.json.Encoder().encode

PodsOn = Callable[[str], Iterable[PodInfo]]
"""The pods on a node, by its name."""


class HTTPExtender:
    """One of `extenders:` in the configuration (`framework.extender.Extender`)."""

    def __init__(self, config: ExtenderConfig) -> None:
        """`ValueError` if its address or TLS settings cannot be used."""
        self.name = config.url_prefix or ""
        self.ignorable = bool(config.ignorable)
        self.weight = config.weight or 0
        self.is_filter = bool(config.filter_verb)
        self.is_prioritizer = bool(config.prioritize_verb)
        self.is_binder = bool(config.bind_verb)
        self.supports_preemption = bool(config.preempt_verb)
        managed = config.managed_resources or ()
        self.ignored_resources = frozenset(each.name or "" for each in managed if each.ignored_by_scheduler)
        self._managed = frozenset(each.name or "" for each in managed)
        self._node_cache_capable = bool(config.node_cache_capable)
        self._filter_verb = config.filter_verb or ""
        self._prioritize_verb = config.prioritize_verb or ""
        self._bind_verb = config.bind_verb or ""
        self._preempt_verb = config.preempt_verb or ""
        self._url = self.name.rstrip("/")
        timeout = parse_duration(config.http_timeout) / 1e9 if config.http_timeout else 0.0
        self._timeout = timeout or DEFAULT_TIMEOUT
        transport = _transport(config)
        self._http = HTTPClient(self._url, transport.tls(), server_hostname=transport.tls_server_name or None)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether a container asks for a resource that it manages; one that manages nothing is asked about all."""
        if not self._managed:
            return True
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            resources = container.resources
            if resources is not None:
                for named in (resources.requests, resources.limits):
                    if named and not self._managed.isdisjoint(named):
                        return True
        return False

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> ExtenderFilterResult:
        """Which of the nodes the pod may go to."""
        if not self.is_filter:
            return ExtenderFilterResult([_name(node) for node in nodes])
        answer = _Answer(await self._send(self._filter_verb, self._args(pod, nodes)), self._filter_verb, self.name)
        if error := answer.text("Error"):
            raise ExtenderError(error)
        names = answer.get("NodeNames")
        found: list[str] = []
        if self._node_cache_capable and names is not None:
            there = {_name(node) for node in nodes}
            found = answer.texts("NodeNames")
            for name in found:
                if name not in there:
                    raise ExtenderError(
                        f"extender {quote(self.name)} claims a filtered node {quote(name)} "
                        "which is not found in the input node list"
                    )
        elif answer.get("Nodes") is not None:
            found = answer.node_names("Nodes")
        return ExtenderFilterResult(found, answer.texts_by_name("FailedNodes"), answer.texts_by_name(_UNRESOLVABLE))

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """0..10 for each node, before it is weighed."""
        if not self.is_prioritizer:
            return {}
        answer = await self._send(self._prioritize_verb, self._args(pod, nodes))
        if answer is None:
            return {}
        if not isinstance(answer, list):
            raise ExtenderError(_malformed(self.name, self._prioritize_verb, "not a list"))
        scores: dict[str, int] = {}
        for each in answer:
            entry = _Answer(each, self._prioritize_verb, self.name)
            scores[entry.text("Host")] = entry.number("Score")
        return scores

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Let it bind the pod in our place."""
        metadata = pod.metadata
        assert metadata is not None
        args = {
            "PodName": metadata.name or "",
            "PodNamespace": metadata.namespace or "",
            "PodUID": metadata.uid or "",
            "Node": node_name,
        }
        answer = _Answer(await self._send(self._bind_verb, args, again=False), self._bind_verb, self.name)
        if error := answer.text("Error"):
            raise ExtenderError(error)

    async def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn
    ) -> Mapping[str, Victims]:
        """Which nodes it agrees with, and who would have to go there. `pods_on` tells the pods of a node."""
        args: dict[str, Any] = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
        if self._node_cache_capable:
            args["NodeNameToMetaVictims"] = {
                name: {
                    "Pods": [{"UID": victim.uid} for victim in each.pods],
                    "NumPDBViolations": each.num_pdb_violations,
                }
                for name, each in victims.items()
            }
        else:
            args["NodeNameToVictims"] = {
                name: {
                    "Pods": [victim.pod for victim in each.pods],
                    "NumPDBViolations": each.num_pdb_violations,
                }
                for name, each in victims.items()
            }
        answer = _Answer(await self._send(self._preempt_verb, args), self._preempt_verb, self.name)
        found = answer.get("NodeNameToMetaVictims")
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise ExtenderError(_malformed(self.name, self._preempt_verb, "NodeNameToMetaVictims is not a map"))
        return {name: self._victims(name, each, pods_on) for name, each in found.items()}

    def _victims(self, node_name: str, value: Any, pods_on: PodsOn) -> Victims:
        meta = _Answer(value, self._preempt_verb, self.name)
        by_uid = {pod.uid: pod for pod in pods_on(node_name)}
        pods: list[PodInfo] = []
        for each in meta.get("Pods") or ():
            uid = _Answer(each, self._preempt_verb, self.name).text("UID")
            if uid not in by_uid:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
            pods.append(by_uid[uid])
        return Victims(pods, meta.number("NumPDBViolations"))

    def _args(self, pod: Pod, nodes: Sequence[Node]) -> dict[str, Any]:
        if self._node_cache_capable:
            return {"Pod": pod, "Nodes": None, "NodeNames": [_name(node) for node in nodes]}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}

    async def _send(self, verb: str, args: Mapping[str, Any], *, again: bool = True) -> Any:
        body = _encode(args)
        url = f"{self._url}/{verb}"
        try:
            try:
                response = await self._post(verb, body)
            except ConnectionFailed:
                if not again:
                    raise
                response = await self._post(verb, body)
        except TimeoutError:
            late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise ExtenderError(f'Post "{url}": {late}') from None
        except OSError as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        if response.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        try:
            return msgspec.json.decode(response.body)
        except ValueError as error:
            raise ExtenderError(_malformed(self.name, verb, str(error))) from error

    async def _post(self, verb: str, body: bytes) -> Response:
        return await self._http.request("POST", f"/{verb}", _HEADERS, body, within=self._timeout)


_UNRESOLVABLE = "FailedAndUnresolvableNodes"


class _Answer:
    """A JSON object whose keys are found in any case of letters; `ExtenderError` where a value has the wrong type."""

    def __init__(self, value: Any, verb: str, extender: str) -> None:
        self._where = (extender, verb)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise ExtenderError(_malformed(extender, verb, "not an object"))
        self._value = value
        self._keys = {key.lower(): key for key in value}

    def get(self, name: str) -> Any:
        """A value; what is written exactly so comes first."""
        if name in self._value:
            return self._value[name]
        return self._value.get(self._keys.get(name.lower(), name))

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            self._wrong(name, "text")
        return value or ""

    def number(self, name: str) -> int:
        value = self.get(name)
        if value is not None and type(value) is not int:
            self._wrong(name, "a whole number")
        return value or 0

    def texts(self, name: str) -> list[str]:
        value = self.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self._wrong(name, "a list of names")
        return list(value)

    def texts_by_name(self, name: str) -> dict[str, str]:
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            self._wrong(name, "a map of texts")
        return dict(value)

    def node_names(self, name: str) -> list[str]:
        """The names of the items of a NodeList."""
        items = _Answer(self.get(name), self._where[1], self._where[0]).get("items") or []
        if not isinstance(items, list):
            self._wrong(name, "a NodeList")
        return [
            _Answer(_Answer(each, self._where[1], self._where[0]).get("metadata"), *reversed(self._where)).text("name")
            for each in items
        ]

    def _wrong(self, name: str, wanted: str) -> None:
        raise ExtenderError(_malformed(*self._where, f"{name} is not {wanted}"))


def _malformed(extender: str, verb: str, why: str) -> str:
    return f"the answer of extender {quote(extender)} to {quote(verb)} cannot be read: {why}"


def _name(node: Node) -> str:
    return (node.metadata.name if node.metadata else None) or ""


def _transport(config: ExtenderConfig) -> Config:
    tls = config.tls_config or ExtenderTLSConfig()
    try:
        authority = _data(tls.ca_data, tls.ca_file)
        certificate, key = _data(tls.cert_data, tls.cert_file), _data(tls.key_data, tls.key_file)
    except OSError as error:
        raise ValueError(f"extender {quote(config.url_prefix or '')}: {error}") from error
    if tls.insecure and authority:
        raise ValueError(
            f"extender {quote(config.url_prefix or '')}: specifying a root certificates file with the insecure flag "
            "is not allowed"
        )
    return Config(
        server=config.url_prefix or "",
        ca_data=authority,
        # With `enableHTTPS` and no CA upstream does not verify the server.
        insecure_skip_tls_verify=bool(tls.insecure) or (bool(config.enable_https) and not authority),
        tls_server_name=tls.server_name or "",
        client_certificate_data=certificate,
        client_key_data=key,
    )


def _data(inline: str | None, file: str | None) -> bytes:
    if inline:
        return base64.b64decode(inline)
    return Path(file).read_bytes() if file else b""
