"""Asks each metric of an autoscaler how many replicas it wants, and tells in the status what it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pybernetes.api import labels
from pybernetes.api.autoscaling.v2 import (
    ContainerResourceMetricStatus,
    CrossVersionObjectReference,
    ExternalMetricSource,
    ExternalMetricStatus,
    HorizontalPodAutoscaler,
    MetricIdentifier,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from pybernetes.api.core.podresources import quantity
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.quantity import BINARY_SI, DECIMAL_SI, Quantity

from ..common.selector_text import selector_text
from .metrics import MetricsClient
from .replicas import (
    Initialization,
    MetricError,
    PodMetric,
    Proposal,
    Tolerances,
    average_replicas,
    group_pods,
    requests_of,
    utilization_replicas,
    value_per_pod_replicas,
    value_replicas,
)

_NO_TARGET: Final = "invalid {} metric source: neither a value target nor an average value target was set"
_NO_RESOURCE_TARGET: Final = (
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
)
_REASONS: Final = {
    "Object": "FailedGetObjectMetric",
    "Pods": "FailedGetPodsMetric",
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "External": "FailedGetExternalMetric",
}


class Target(NamedTuple):
    """The scaled pods."""

    namespace: str
    selector: labels.Selector
    pods: Sequence[Pod]
    wanted: int
    """Replicas by its spec."""
    present: int
    """Replicas by its status."""


class Answer(NamedTuple):
    """The replicas that a metric proposes."""

    replicas: int
    name: str
    """How messages call the metric."""
    status: MetricStatus


class MetricFailed(Exception):
    """A metric that cannot be computed: `reason` and `why` for the condition, the text for the event of the whole."""

    def __init__(self, reason: str, why: str, text: str) -> None:
        super().__init__(text)
        self.reason, self.why = reason, why


def tolerances_of(autoscaler: HorizontalPodAutoscaler, default: float) -> Tolerances:
    """How far off metrics may be, by direction."""
    behavior = autoscaler.spec.behavior if autoscaler.spec else None
    if behavior is None:
        return Tolerances(default, default)
    down, up = (rules.tolerance if rules else None for rules in (behavior.scale_down, behavior.scale_up))
    return Tolerances(
        default if down is None else float(quantity(down).decimal()),
        default if up is None else float(quantity(up).decimal()),
    )


class Evaluator:
    """Computes metrics against their targets."""

    def __init__(self, metrics: MetricsClient, young: Initialization, now: Callable[[], float]) -> None:
        self._metrics, self._young, self._now = metrics, young, now

    async def evaluate(self, spec: MetricSpec, target: Target, tolerances: Tolerances) -> Answer:
        """How many replicas a metric wants. Raises MetricFailed."""
        kind = spec.type or ""
        try:
            if kind == "Resource" and spec.resource is not None:
                what = f"{spec.resource.name} resource metric value"
                return await self._resource(
                    spec.resource.name or "", "", spec.resource.target or MetricTarget(), target, tolerances
                )
            if kind == "ContainerResource" and spec.container_resource is not None:
                source = spec.container_resource
                what = f"{source.container} container metric value"
                return await self._resource(
                    source.name or "", source.container or "", source.target or MetricTarget(), target, tolerances
                )
            if kind == "Pods" and spec.pods is not None:
                what = "pods metric value"
                return await self._pods(spec.pods, target, tolerances)
            if kind == "Object" and spec.object is not None:
                what = "object metric value"
                return await self._object(spec.object, target, tolerances)
            if kind == "External" and spec.external is not None:
                what = f"{(spec.external.metric or MetricIdentifier()).name} external metric value"
                return await self._external(spec.external, target, tolerances)
        except (MetricError, labels.SelectorError) as error:
            raise MetricFailed(_REASONS[kind], str(error), f"failed to get {what}: {error}") from None
        text = f'unknown metric source type "{kind}"'
        raise MetricFailed("InvalidMetricSourceType", text, text)

    async def _resource(
        self, name: str, container: str, wanted: MetricTarget, target: Target, tolerances: Tolerances
    ) -> Answer:
        format = BINARY_SI if name == "memory" else DECIMAL_SI
        if wanted.average_value is None and wanted.average_utilization is None:
            raise MetricError(_NO_RESOURCE_TARGET)
        by_value = wanted.average_value is not None
        try:
            try:
                metrics = await self._metrics.resource(name, target.namespace, target.selector, container)
            except MetricError as error:
                raise MetricError(f"unable to get metrics for resource {name}: {error}") from None
            if by_value:
                proposal = self._average(metrics, wanted, target, tolerances, name)
            else:
                groups = group_pods(_some(target.pods), metrics, name, self._young, self._now())
                proposal = utilization_replicas(
                    metrics,
                    groups,
                    requests_of(target.pods, container, name),
                    current=target.wanted,
                    target=wanted.average_utilization or 0,
                    tolerances=tolerances,
                )
        except MetricError as error:
            raise MetricError(f"failed to get {name} {'usage' if by_value else 'utilization'}: {error}") from None
        current = MetricValueStatus(
            average_value=str(Quantity.milli(proposal.usage.average, format)),
            average_utilization=proposal.usage.utilization,
        )
        text = f"{name} resource"
        if not by_value:
            text = f"{name} {'container ' if container else ''}resource utilization (percentage of request)"
        if container:
            told = MetricStatus(
                type="ContainerResource",
                container_resource=ContainerResourceMetricStatus(name=name, container=container, current=current),
            )
        else:
            told = MetricStatus(type="Resource", resource=ResourceMetricStatus(name=name, current=current))
        return Answer(proposal.replicas, text, told)

    async def _pods(self, source: PodsMetricSource, target: Target, tolerances: Tolerances) -> Answer:
        metric, wanted = source.metric or MetricIdentifier(), source.target or MetricTarget()
        name = metric.name or ""
        try:
            metrics = await self._metrics.pods(name, target.namespace, target.selector, _selector(metric))
        except MetricError as error:
            raise MetricError(f"unable to get metric {name}: {error}") from None
        proposal = self._average(metrics, wanted, target, tolerances, "")
        current = MetricValueStatus(average_value=_decimal(proposal.usage.average))
        told = MetricStatus(type="Pods", pods=PodsMetricStatus(metric=_told(metric), current=current))
        return Answer(proposal.replicas, f"pods metric {name}", told)

    def _average(
        self,
        metrics: dict[str, PodMetric],
        wanted: MetricTarget,
        target: Target,
        tolerances: Tolerances,
        resource: str,
    ) -> Proposal:
        groups = group_pods(_some(target.pods), metrics, resource, self._young, self._now())
        return average_replicas(
            metrics, groups, current=target.wanted, target=_milli(wanted.average_value), tolerances=tolerances
        )

    async def _object(self, source: ObjectMetricSource, target: Target, tolerances: Tolerances) -> Answer:
        metric, wanted = source.metric or MetricIdentifier(), source.target or MetricTarget()
        of = source.described_object or CrossVersionObjectReference()
        name = metric.name or ""
        by_value = wanted.type == "Value" and wanted.value is not None
        if not by_value and not (wanted.type == "AverageValue" and wanted.average_value is not None):
            raise MetricError(_NO_TARGET.format("object"))
        try:
            value = await self._metrics.object(name, target.namespace, of, _selector(metric))
        except MetricError as error:
            text = f"unable to get metric {name}: {of.kind} on {target.namespace} {of.name}/{error}"
            raise MetricError(text if by_value else f"failed to get {name} object metric: {text}") from None
        proposal = self._single(value, wanted, target, tolerances, by_value=by_value)
        told = MetricStatus(
            type="Object",
            object=ObjectMetricStatus(
                described_object=of, metric=_told(metric), current=_single_status(proposal, by_value)
            ),
        )
        text = f"{of.kind} metric {name}" if by_value else f"external metric {name}({selector_text(metric.selector)})"
        return Answer(proposal.replicas, text, told)

    async def _external(self, source: ExternalMetricSource, target: Target, tolerances: Tolerances) -> Answer:
        metric, wanted = source.metric or MetricIdentifier(), source.target or MetricTarget()
        name = metric.name or ""
        by_value = wanted.average_value is None
        if by_value and wanted.value is None:
            raise MetricError(_NO_TARGET.format("external"))
        try:
            value = await self._metrics.external(name, target.namespace, _selector(metric))
            proposal = self._single(value, wanted, target, tolerances, by_value=by_value)
        except MetricError as error:
            text = f"unable to get external metric {target.namespace}/{name}/{selector_text(metric.selector)}: {error}"
            whole = f"failed to get external metric {name}" if by_value else f"failed to get {name} external metric"
            raise MetricError(f"{whole}: {text}") from None
        told = MetricStatus(
            type="External",
            external=ExternalMetricStatus(metric=_told(metric), current=_single_status(proposal, by_value)),
        )
        return Answer(proposal.replicas, f"external metric {name}({selector_text(metric.selector)})", told)

    @staticmethod
    def _single(
        value: int, wanted: MetricTarget, target: Target, tolerances: Tolerances, *, by_value: bool
    ) -> Proposal:
        if by_value:
            return value_replicas(
                value, target.pods, current=target.wanted, target=_milli(wanted.value), tolerances=tolerances
            )
        return value_per_pod_replicas(
            value, current=target.present, target=_milli(wanted.average_value), tolerances=tolerances
        )


def _some(pods: Sequence[Pod]) -> Sequence[Pod]:
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    return pods


def _selector(metric: MetricIdentifier) -> labels.Selector:
    """Without a selector a metric is not narrowed down, unlike pods."""
    return labels.Selector() if metric.selector is None else labels.from_label_selector(metric.selector)


def _told(metric: MetricIdentifier) -> MetricIdentifier:
    return MetricIdentifier(name=metric.name, selector=metric.selector)


def _single_status(proposal: Proposal, by_value: bool) -> MetricValueStatus:
    amount = _decimal(proposal.usage.average)
    return MetricValueStatus(value=amount) if by_value else MetricValueStatus(average_value=amount)


def _decimal(milli: int) -> str:
    return str(Quantity.milli(milli))


def _milli(value: Any) -> int:
    return quantity(value).milli_value()
