"""`kubectl taint`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def run(context: Context, arguments: list[str]) -> int | None:
    """`taint`."""
    flags = context.flags
    dry = mutating.dry_run(flags)
    at = next((i for i, w in enumerate(arguments) if "=" in w or ":" in w or w.endswith("-")), len(arguments))
    resources, changes = arguments[:at], arguments[at:]
    for word in changes:
        if not ("=" in word or ":" in word or word.endswith("-")):
            raise CLIError(f"all resources must be specified before taint changes: {word}")
    if not resources:
        raise CLIError("one or more resources must be specified as <resource> <name>")
    if not changes:
        raise CLIError("at least one taint update is required")
    try:
        new, removed = parse(changes)
    except CLIError as error:
        raise CLIError(f"{error.message}\nSee '{context.path} -h' for help and examples") from None
    if flags.on("all") and flags.text("selector"):
        raise CLIError("setting 'all' parameter with a non empty selector is prohibited")
    if not flags.on("all") and not flags.text("selector") and len(resources) < 2 and "/" not in resources[0]:
        raise CLIError("at least one resource name must be specified since 'all' parameter is not set")
    kind = resources[0].partition("/")[0]
    if context.mapper.resource(kind).kind != "Node":
        raise CLIError(f"invalid resource type {kind}, only node types are supported")
    both = [f"{t['key']}={t['effect']}" for t in new if any(_same(t, gone) for gone in removed)]
    if both:
        raise CLIError(f"can not both modify and remove the following taint(s) in the same command: {', '.join(both)}")
    builder = Builder(context).selectors(flags.text("selector"), "", flags.on("all"))
    builder.arguments(resources, allow_empty=flags.on("all"))
    infos = builder.infos()
    errors = list(builder.errors)
    for info in infos:
        current = (info.object.get("spec") or {}).get("taints") or []
        if not flags.on("overwrite"):
            clash = ",".join(t["key"] for t in new if any(_same(t, c) for c in current))
            if clash:
                problem = f"node {info.name} already has {clash} taint(s) with same effect(s) and --overwrite is false"
                errors.append(CLIError(problem))
                continue
        missing = [gone for gone in removed if not any(_same(gone, c) for c in current)]
        if missing:
            errors += [CLIError(f'taint "{_text(gone)}" not found') for gone in missing]
            continue
        kept = [c for c in current if not any(_same(gone, c) for gone in removed) and not any(_same(t, c) for t in new)]
        after = [*new, *kept]
        verb = "modified" if new and removed else "tainted" if new else "untainted"
        if flags.on("overwrite") and new and any(_same(t, c) for t in new for c in current):
            verb = "modified"
        obj = info.object
        obj.setdefault("spec", {})["taints"] = after
        if dry != "client":
            version = (obj.get("metadata") or {}).get("resourceVersion")
            body = {"metadata": {"resourceVersion": version}, "spec": {"taints": after or None}}
            obj = mutating.patch(context, info, "merge", body, dry)
        context.out(mutating.printer_for(flags, verb)(obj))
    raise_all(errors)
    return None


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one["key"] == other["key"] and (not one["effect"] or not other["effect"] or one["effect"] == other["effect"])


def _text(taint: dict[str, Any]) -> str:
    text = str(taint["key"])
    if taint.get("value"):
        text += f"={taint['value']}"
    return f"{text}:{taint['effect']}" if taint["effect"] else text


def parse(changes: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Taints to set and to remove. Raises CLIError."""
    new: list[dict[str, Any]] = []
    removed: list[dict[str, Any]] = []
    for word in changes:
        if word.endswith("-"):
            removed.append(_taint(word[:-1], word))
            continue
        taint = _taint(word, word)
        if not taint["effect"]:
            raise CLIError(
                f"invalid taint spec: {word}, name part must consist of alphanumeric characters, '-', '_' or '.',"
                " and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc',"
                " regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            )
        if any(_same(taint, each) for each in new):
            shown = "{" + f"{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>" + "}"
            raise CLIError(f"duplicated taints with the same key and effect: {shown}")
        new.append(taint)
    return new, removed


def _taint(text: str, whole: str) -> dict[str, Any]:
    pair, colon, effect = text.partition(":")
    if ":" in effect:
        raise CLIError(f"invalid taint spec: {whole}")
    if colon and effect not in _EFFECTS:
        raise CLIError(f"invalid taint effect: {effect}, unsupported taint effect")
    key, equals, value = pair.partition("=")
    if "=" in value or not key:
        raise CLIError(f"invalid taint spec: {whole}")
    found = {"key": key, "effect": effect}
    if equals and value:
        found = {"key": key, "value": value, "effect": effect}
    return found


COMMAND = Command(
    "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
    "Update the taints on one or more nodes",
    run,
    flags=(
        *mutating.PRINT_FLAGS,
        mutating.DRY_RUN,
        mutating.VALIDATE,
        mutating.SELECTOR,
        mutating.ALL,
        mutating.RECORD,
        mutating.field_manager("kubectl-taint"),
        Flag("overwrite", "bool", help="Change taints that are there."),
    ),
)
