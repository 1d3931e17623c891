"""The common end of generators: print or create the object that the flags of a `create` subcommand describe."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, add_source
from pybernetes.kubectl.flags import Flag, FlagError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pybernetes.kubectl.context import Context

FLAGS: tuple[Flag, ...] = (
    *mutating.PRINT_FLAGS,
    mutating.DRY_RUN,
    mutating.VALIDATE,
    mutating.SAVE_CONFIG,
    mutating.RECORD,
    mutating.field_manager("kubectl-create"),
)


def finish(context: Context, obj: dict[str, Any], operation: str = "created") -> dict[str, Any]:
    """Creates an object in the namespace of the command, unless it is a dry run, and prints it."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    mutating.validation(flags) if "validate" in flags else None
    printer = mutating.printer_for(flags, operation, dry, typed=True)
    if flags.on("save-config"):
        mutating.set_last_applied(obj)
    mutating.record(context, obj)
    if dry == "client":
        if context.explicit_namespace() and obj["kind"] not in CLUSTER_SCOPED:
            obj["metadata"]["namespace"] = context.namespace()
        context.out(printer(obj))
        return obj
    mapping = context.mapper.kind(obj["apiVersion"], obj["kind"])
    if mapping.namespaced:
        obj["metadata"]["namespace"] = context.namespace()
    info = Info(mapping, context.namespace(), obj["metadata"]["name"], obj)
    sent = mutating.parameters(flags, dry)
    try:
        info.refresh(context.client.post(info.collection(), obj, sent))
    except CLIError as error:
        raise failed(error, obj, context.path) from None
    context.out(printer(info.object))
    return info.object


def failed(error: CLIError, obj: dict[str, Any], path: str) -> CLIError:
    """Generators say what they could not create."""
    from pybernetes.kubectl.errors import StatusError

    names = {
        "Deployment": "deployment", "ConfigMap": "configmap", "Secret": "secret", "Ingress": "ingress", "Job": "job",
        "CronJob": "cronjob", "ServiceAccount": "serviceaccount", "ResourceQuota": "quota",
        "PodDisruptionBudget": "poddisruptionbudgets", "PriorityClass": "priorityclass",
    }  # fmt: skip
    name = names.get(obj["kind"])
    if obj["kind"] == "Service" and path.startswith("kubectl create "):
        name = f"{obj['spec'].get('type') or 'ClusterIP'} service"
    if obj["kind"] == "Secret" and obj.get("type") == "kubernetes.io/dockerconfigjson":
        name = "secret"
    if not name or not isinstance(error, StatusError):
        return add_source(error, "", "")
    word = {"Job": "failed to create job", "Ingress": "failed to create ingress"}.get(obj["kind"])
    message = f"{word or f'failed to create {name}'}: {error.message}"
    return CLIError(message)


CLUSTER_SCOPED = frozenset(("Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass"))


def one_name(context: Context, arguments: list[str]) -> str:
    """The NAME argument of a generator. Raises CLIError."""
    before = arguments[: context.flags.dash] if context.flags.dash >= 0 else arguments
    if len(before) != 1:
        raise CLIError(
            f"exactly one NAME is required, got {len(before)}\nSee '{context.path} -h' for help and examples"
        )
    return before[0]


def require(context: Context, *names: str) -> None:
    """Flags that must be given. Raises FlagError."""
    missing = [f'"{name}"' for name in names if not context.flags.changed(name)]
    if missing:
        raise FlagError(f"required flag(s) {', '.join(missing)} not set")


def generator(
    use: str,
    short: str,
    make: Callable[[Context, list[str]], dict[str, Any]],
    flags: Sequence[Flag] = (),
    aliases: Sequence[str] = (),
    examples: str = "",
) -> Command:
    """A subcommand of create: `make` returns the object."""

    def run(context: Context, arguments: list[str]) -> int | None:
        finish(context, make(context, arguments))
        return None

    return Command(use, short, run, flags=(*flags, *FLAGS), aliases=aliases, examples=examples)
