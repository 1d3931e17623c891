"""`kubectl describe hpa`."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import when
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def autoscaler(this: Description) -> None:
    """A HorizontalPodAutoscaler (read as autoscaling/v2): metrics, limits, behaviour and conditions."""
    obj = this.obj
    if obj.get("apiVersion") != "autoscaling/v2":
        path = f"/apis/autoscaling/v2/namespaces/{this.info.namespace}/horizontalpodautoscalers/{this.info.name}"
        try:
            obj = this.context.client.get(path)
        except CLIError:
            pass
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    this.head()
    this.write(0, f"CreationTimestamp:\t{when(this.get('metadata', 'creationTimestamp'))}\n")
    target = spec.get("scaleTargetRef") or {}
    this.write(0, f"Reference:\t{target.get('kind', '')}/{target.get('name', '')}\n")
    this.write(0, "Metrics:\t( current / target )\n")
    current = status.get("currentMetrics") or []
    for at, metric in enumerate(spec.get("metrics") or ()):
        _metric(this, metric, current[at] if at < len(current) else {})
    this.write(0, f"Min replicas:\t{spec.get('minReplicas', '<unset>')}\n")
    this.write(0, f"Max replicas:\t{spec.get('maxReplicas', 0)}\n")
    if spec.get("behavior") is not None:
        this.write(0, "Behavior:\n")
        _behavior(this, "Scale Up", spec["behavior"].get("scaleUp"))
        _behavior(this, "Scale Down", spec["behavior"].get("scaleDown"))
    this.write(0, f"{target.get('kind', '')} pods:\t")
    this.write(0, f"{status.get('currentReplicas', 0)} current / {status.get('desiredReplicas', 0)} desired\n")
    if status.get("conditions"):
        this.write(0, "Conditions:\n")
        this.write(1, "Type\tStatus\tReason\tMessage\n")
        this.write(1, "----\t------\t------\t-------\n")
        for each in status["conditions"]:
            keys = ("type", "status", "reason", "message")
            this.write(1, "\t".join(str(each.get(key, "")) for key in keys) + "\n")
    this.events()


def _metric(this: Description, metric: dict[str, Any], reported: dict[str, Any]) -> None:
    kind = str(metric.get("type", ""))
    field = kind[:1].lower() + kind[1:]
    source: dict[str, Any] = metric.get(field) or {}
    target = source.get("target") or {}
    current: dict[str, Any] = dig(reported, field, "current", default={})
    name = dig(source, "metric", "name", default="")
    average = "averageValue"
    if kind == "External":
        key, text = (average, "target average value") if target.get(average) else ("value", "target value")
        this.write(1, f'"{name}" ({text}):\t{current.get(key, "<unknown>")} / {target.get(key, "<nil>")}\n')
    elif kind == "Pods":
        this.write(1, f'"{name}" on pods:\t{current.get(average, "<unknown>")} / {target.get(average, "<nil>")}\n')
    elif kind == "Object":
        described = source.get("describedObject") or {}
        key, text = (
            (average, "target average value") if target.get("type") == "AverageValue" else ("value", "target value")
        )
        this.write(1, f'"{name}" on {described.get("kind", "")}/{described.get("name", "")} ')
        this.write(0, f"({text}):\t{current.get(key, '<unknown>')} / {target.get(key, '<nil>')}\n")
    elif kind in ("Resource", "ContainerResource"):
        of = f' of container "{source.get("container", "")}"' if kind == "ContainerResource" else ""
        this.write(1, f"resource {source.get('name', '')}{of} on pods")
        if target.get(average) is not None:
            this.write(0, f":\t{current.get(average, '<unknown>')} / {target[average]}\n")
            return
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}% ({current.get(average, '')})"
        this.write(1, f"(as a percentage of request):\t{shown} / {'<auto>' if wanted is None else f'{wanted}%'}\n")
    else:
        this.write(1, f'<unknown metric type "{kind}">\n')


def _behavior(this: Description, direction: str, rules: dict[str, Any] | None) -> None:
    if rules is None:
        return
    this.write(1, f"{direction}:\n")
    if rules.get("stabilizationWindowSeconds") is not None:
        this.write(2, f"Stabilization Window: {rules['stabilizationWindowSeconds']} seconds\n")
    if rules.get("policies"):
        this.write(2, f"Select Policy: {rules.get('selectPolicy') or 'Max'}\n")
        this.write(2, "Policies:\n")
        for each in rules["policies"]:
            text = (
                f"- Type: {each.get('type')}\tValue: {each.get('value')}\tPeriod: {each.get('periodSeconds')} seconds"
            )
            this.write(3, f"{text}\n")
