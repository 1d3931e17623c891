"""Containers that ask for nothing ask for what containers of the same image have used before.

Upstream had it up to v1.9, with a database of Heapster's as its source. Here usage is sampled from metrics.k8s.io,
wherever that is served, and kept as a month of percentiles by image (`usage_history`), in a file if one is named:

    apiVersion: initialresources.admission.k8s.io/v1alpha1
    kind: Configuration
    percentile: 90                    # of the samples
    namespaceOnly: false              # whether usage in other namespaces counts
    kubeConfigFile: metrics.conf      # a cluster that serves PodMetrics; usually this one
    samplePeriodSeconds: 60
    historyFile: usage.json
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pybernetes.api.core.v1 import Container, Pod, PodSpec, ResourceRequirements
from pybernetes.api.errors import APIError
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import Quantity, QuantityError, parse
from pybernetes.component.tasks import Tasks

from ..registry.lister import lister
from .configuration import check_kind
from .plugin import CREATE, Attributes, Plugin
from .usage_history import Step, UsageHistory, estimate

if TYPE_CHECKING:
    from ..registry.registry import Registry

log = logging.getLogger(__name__)

ANNOTATION: Final = "kubernetes.io/initial-resources"
_VERSIONS: Final = ("initialresources.admission.k8s.io/v1alpha1",)
_METRICS: Final = "/apis/metrics.k8s.io/v1beta1/pods"
_WEEK, _MONTH = 7, 30


class Configuration(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The plugin's configuration."""

    percentile: int = 90
    namespace_only: bool = False
    kube_config_file: str = ""
    sample_period_seconds: float = 60.0
    history_file: str = ""


class _ContainerMetrics(msgspec.Struct):
    name: str = ""
    usage: dict[str, str] = {}


class _PodMetrics(msgspec.Struct):
    metadata: ObjectMeta
    containers: list[_ContainerMetrics] = []


class _PodMetricsList(msgspec.Struct):
    items: list[_PodMetrics] = []


class InitialResources(Plugin):
    """Upstream's InitialResources, as it was."""

    name = "InitialResources"
    operations = (CREATE,)
    resources = ("pods",)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self._configuration = read_configuration(configuration)
        self.history = UsageHistory()
        self._file = Path(self._configuration.history_file) if self._configuration.history_file else None
        if self._file is not None:
            self.history.load(self._file)
        self._tasks = Tasks("InitialResources")

    async def start(self) -> None:
        if self._configuration.kube_config_file:
            self._tasks.start("initial-resources-sampling", self._sample_regularly)

    async def stop(self) -> None:
        await self._tasks.stop()
        if self._file is not None:
            self.history.save(self._file)

    def admit(self, attributes: Attributes) -> None:
        pod: Pod = attributes.new
        spec = pod.spec or PodSpec()
        now = self.registry.clock.now()
        notes = [
            note
            for what, containers in (("init container", spec.init_containers), ("container", spec.containers))
            for note in self._fill(containers or (), what, attributes.namespace, now)
        ]
        if notes:
            meta = pod.metadata = pod.metadata or ObjectMeta()
            text = f"Initial Resources plugin set: {'; '.join(notes)}"
            meta.annotations = {**(meta.annotations or {}), ANNOTATION: text}

    def _fill(self, containers: Iterable[Container], what: str, namespace: str, now: float) -> Iterator[str]:
        for container in containers:
            resources = container.resources = container.resources or ResourceRequirements()
            said = {**(resources.requests or {}), **(resources.limits or {})}
            found: dict[str, str] = {}
            for name in ("cpu", "memory"):
                value = self._estimate(name, container.image or "", namespace, now) if name not in said else None
                if value is not None:
                    found[name] = str(Quantity.milli(value) if name == "cpu" else Quantity(value))
            if found:
                resources.requests = {**(resources.requests or {}), **found}
                yield f"{', '.join(sorted(found))} request for {what} {container.name}"

    def _estimate(self, resource: str, image: str, namespace: str, now: float) -> int | None:
        percentile = self._configuration.percentile
        steps = [Step(percentile, namespace, True, _WEEK), Step(percentile, namespace, True, _MONTH)]
        if self._configuration.namespace_only:
            steps.append(Step(percentile, namespace, False, _MONTH))
        else:
            steps += [Step(percentile, None, True, _WEEK), Step(percentile, None, True, _MONTH)]
            steps.append(Step(percentile, None, False, _MONTH))
        return estimate(self.history, resource, image, steps, now)

    async def _sample_regularly(self) -> None:
        from pybernetes.client import config
        from pybernetes.client.transport import Transport

        transport = Transport(config.from_kubeconfig([Path(self._configuration.kube_config_file)]))
        try:
            while True:
                try:
                    answer = await transport.request("GET", _METRICS)
                    self.record(answer.body)
                    if self._file is not None:
                        self.history.save(self._file)
                except (APIError, OSError, TimeoutError, ValueError) as error:
                    log.warning("InitialResources: no usage from %s: %s", _METRICS, error)
                await asyncio.sleep(self._configuration.sample_period_seconds)
        finally:
            await transport.close()

    def record(self, body: bytes) -> None:
        """Take what a PodMetricsList says into the history. Raises ValueError if it is none."""
        now = self.registry.clock.now()
        pods = lister(self.registry, "", "v1", "pods")
        for metrics in msgspec.json.decode(body, type=_PodMetricsList).items:
            namespace = metrics.metadata.namespace or ""
            pod: Pod | None = pods.get(namespace, metrics.metadata.name or "")
            if pod is None or pod.spec is None:
                continue
            images = {each.name: each.image or "" for each in pod.spec.containers or ()}
            for each in metrics.containers:
                if each.name in images:
                    self._record(images[each.name], namespace, each.usage, now)
        self.history.forget(now)

    def _record(self, image: str, namespace: str, usage: dict[str, str], now: float) -> None:
        for name, value in usage.items():
            try:
                quantity = parse(value)
            except QuantityError:
                continue
            if name in ("cpu", "memory"):
                whole = quantity.milli_value() if name == "cpu" else quantity.value()
                self.history.record(name, image, namespace, whole, now)


def read_configuration(configuration: Any) -> Configuration:
    """The configuration, complete and sound. Raises ValueError."""
    if configuration is None:
        return Configuration()
    fields = check_kind(configuration, "Configuration", _VERSIONS, "InitialResources")
    try:
        read = msgspec.convert(fields, Configuration)
    except msgspec.ValidationError as error:
        raise ValueError(f"InitialResources: {error}") from None
    if not 0 < read.percentile <= 100:
        raise ValueError(f"InitialResources: percentile: Invalid value: {read.percentile}: must be between 1 and 100")
    if read.sample_period_seconds <= 0:
        seconds = read.sample_period_seconds
        raise ValueError(f"InitialResources: samplePeriodSeconds: Invalid value: {seconds}: must be positive")
    if read.kube_config_file and not Path(read.kube_config_file).is_file():
        raise ValueError(f"InitialResources: kubeConfigFile: no such file: {read.kube_config_file}")
    return read
