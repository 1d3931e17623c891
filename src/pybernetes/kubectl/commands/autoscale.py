"""`kubectl autoscale`: a HorizontalPodAutoscaler for a workload."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.generating import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_SCALABLE = ("ReplicationController", "Deployment", "StatefulSet", "ReplicaSet")


def run(context: Context, arguments: list[str]) -> int | None:
    """`autoscale`."""
    flags = context.flags
    if not flags.changed("max"):
        raise CLIError('required flag(s) "max" not set')
    low, high = flags.number("min"), flags.number("max")
    if high < 1:
        raise CLIError(f"--max=MAXPODS is required and must be at least 1, max: {high}")
    if high < low:
        raise CLIError(f"--max=MAXPODS must be larger or equal to --min=MINPODS, max: {high}, min: {low}")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.latest = False
    infos = builder.arguments(arguments, allow_empty=False).infos()
    if not infos:
        raise_all(builder.errors)
    for info in infos:
        if info.mapping.kind not in _SCALABLE:
            where = f"{info.mapping.api_version}, Resource={info.mapping.resource}"
            problem = f"could not find scale subresource for {where} in discovery information"
            raise CLIError(f"cannot autoscale a {info.mapping.kind}: {problem}")
        spec: dict[str, Any] = {
            "scaleTargetRef": {"kind": info.mapping.kind, "name": info.name, "apiVersion": info.mapping.api_version},
        }
        if low > 0:
            spec["minReplicas"] = low
        spec["maxReplicas"] = high
        metrics = [_metric(name, flags.text(name)) for name in ("cpu", "memory") if flags.text(name)]
        if flags.number("cpu-percent") >= 0 and not flags.text("cpu"):
            metrics.append(_metric("cpu", f"{flags.number('cpu-percent')}%"))
        if metrics:
            spec["metrics"] = metrics
        finish(
            context,
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": flags.text("name") or info.name},
                "spec": spec,
                "status": {"desiredReplicas": 0, "currentMetrics": None},
            },
            "autoscaled",
        )
    raise_all(builder.errors)
    return None


def _metric(name: str, text: str) -> dict[str, Any]:
    if text.endswith("%"):
        target: dict[str, Any] = {"type": "Utilization", "averageUtilization": int(text[:-1])}
    elif text.isdigit() and name == "cpu":
        target = {"type": "Utilization", "averageUtilization": int(text)}
    else:
        target = {"type": "AverageValue", "averageValue": text}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


COMMAND = Command(
    "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY]",
    "Auto-scale a deployment, replica set, stateful set, or replication controller",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        mutating.DRY_RUN,
        mutating.SAVE_CONFIG,
        mutating.RECORD,
        mutating.field_manager("kubectl-autoscale"),
        Flag("cpu", help="Target of CPU: a percentage of requests, or a quantity."),
        Flag("cpu-percent", "int", -1, "Target of CPU in percent.", hidden=True),
        Flag("max", "int", -1, "Most pods."),
        Flag("memory", help="Target of memory: a percentage of requests, or a quantity."),
        Flag("min", "int", -1, "Fewest pods."),
        Flag("name", help="Name of the autoscaler."),
    ),
)
