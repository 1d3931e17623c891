"""`kubectl wait`: until objects have a condition or a value, exist or are gone; several `--for` one by one."""

from __future__ import annotations

import time

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder, Info
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.deleting import wait_gone
from pybernetes.kubectl.errors import CLIError, StatusError, not_found
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printing import PRINT_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pybernetes.kubectl.context import Context

_WEEK = 168 * 3600.0


def run(context: Context, arguments: list[str]) -> int | None:
    """`wait`."""
    flags = context.flags
    wanted = flags.words("for")
    if not wanted:
        raise CLIError("unrecognized condition: []")
    timeout = flags["timeout"]
    timeout = _WEEK if timeout < 0 else timeout
    checks = [_condition(text) for text in wanted]
    deadline = time.monotonic() + timeout
    for check in checks:
        if check == "create":
            _wait_created(context, arguments, deadline, timeout)
            infos = _infos(context, arguments)
            for info in infos:
                context.out(mutating.printer_for(flags, "condition met")(info.object))
            continue
        infos = _infos(context, arguments, missing_is_fine=check == "delete")
        if not infos:
            if check == "delete":
                continue
            raise CLIError("no matching resources found")
        for info in infos:
            _wait(context, info, check, deadline, timeout)
            context.out(mutating.printer_for(flags, "condition met")(info.object))
    return None


def _infos(context: Context, arguments: list[str], missing_is_fine: bool = False) -> list[Info]:
    flags = context.flags
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"))
    builder.all_namespaces = flags.on("all-namespaces")
    builder.selectors(flags.text("selector"), flags.text("field-selector"), flags.on("all"))
    builder.arguments(arguments, allow_empty=flags.on("all"))
    infos = builder.infos()
    errors = builder.errors
    if missing_is_fine:
        errors = [error for error in errors if not not_found(error)]
    if errors:
        raise errors[0]
    return infos


def _condition(text: str) -> Any:
    if text.lower() == "delete":
        return "delete"
    if text.lower() == "create":
        return "create"
    if text.startswith("condition="):
        name, equals, value = text[len("condition=") :].partition("=")
        return _by_condition(name, value if equals else "true")
    if text.startswith("jsonpath="):
        return _by_jsonpath(text[len("jsonpath=") :])
    raise CLIError(f'unrecognized condition: "{text}"')


def _by_condition(name: str, value: str) -> Callable[[dict[str, Any]], bool]:
    def check(obj: dict[str, Any]) -> bool:
        generation = dig(obj, "metadata", "generation", default=0)
        observed = dig(obj, "status", "observedGeneration")
        if observed is not None and observed < generation:
            return False
        for each in dig(obj, "status", "conditions", default=[]):
            if str(each.get("type", "")).lower() == name.lower():
                seen = each.get("observedGeneration")
                if seen is not None and seen < generation:
                    return False
                return str(each.get("status", "")).lower() == value.lower()
        return False

    return check


def _by_jsonpath(text: str) -> Callable[[dict[str, Any]], bool]:
    from pybernetes.kubectl.printers.customcolumns import relaxed
    from pybernetes.kubectl.printers.jsonpath import JSONPath, JSONPathError, _text

    if not text:
        raise CLIError("jsonpath expression cannot be empty")
    at = _equals(text)
    path, value = (text, None) if at is None else (text[:at], text[at + 1 :])
    if value == "":
        raise CLIError(
            "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3"
        )
    path = path.strip("'\"")
    value = value.strip("'\"") if value is not None else None
    try:
        compiled = JSONPath(relaxed(path))
    except JSONPathError as error:
        raise CLIError(str(error)) from None

    def check(obj: dict[str, Any]) -> bool:
        try:
            groups = compiled.results(obj)
        except JSONPathError:
            return False
        values = [each for group in groups for each in group]
        if not values:
            return False
        if value is None:
            return True
        if len(values) > 1:
            raise CLIError("given jsonpath expression matches more than one value")
        if isinstance(values[0], dict | list):
            raise CLIError("jsonpath leads to a nested object or list which is not supported")
        return _text(values[0]).strip() == value.strip()

    return check


def _equals(text: str) -> int | None:
    """Where the value begins: the `=` outside of braces and brackets."""
    depth = 0
    for at, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "=" and not depth:
            return at
    return None


def _timed_out(info: Info) -> CLIError:
    return CLIError(f"timed out waiting for the condition on {info.mapping.resource}/{info.name}")


def _wait(context: Context, info: Info, check: Any, deadline: float, timeout: float) -> None:
    if check == "delete":
        left = max(deadline - time.monotonic(), 0.001)
        if timeout == 0:
            raise CLIError(f"condition not met for {info.mapping.resource}/{info.name}")
        uid = dig(info.object, "metadata", "uid", default="")
        if not wait_gone(context, info, left, uid):
            raise _timed_out(info)
        return
    path = info.mapping.path(info.namespace)
    selector = {"fieldSelector": f"metadata.name={info.name}"}
    while not check(info.object):
        left = deadline - time.monotonic()
        if timeout == 0:
            raise CLIError(f"condition not met for {info.mapping.resource}/{info.name}")
        if left <= 0:
            raise _timed_out(info)
        version = dig(info.object, "metadata", "resourceVersion", default="")
        try:
            for event in context.client.watch(path, {**selector, "resourceVersion": version}, timeout=left):
                if event.get("type") == "ERROR":
                    break
                if event.get("type") == "DELETED":
                    raise StatusError(
                        {
                            "reason": "NotFound",
                            "message": f'{info.mapping.group_resource} "{info.name}" not found',
                            "code": 404,
                        }
                    )
                info.refresh(event["object"])
                if check(info.object) or time.monotonic() > deadline:
                    break
        except TimeoutError:
            raise _timed_out(info) from None
        if not check(info.object):
            info.refresh(context.client.get(info.path()))


def _wait_created(context: Context, arguments: list[str], deadline: float, timeout: float) -> None:
    while True:
        try:
            if _infos(context, arguments):
                return
        except StatusError as error:
            if not not_found(error):
                raise
        if time.monotonic() > deadline:
            raise CLIError("timed out waiting for the condition")
        time.sleep(0.1)


COMMAND = Command(
    "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)])"
    " [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]]",
    "Wait for a specific condition on one or many resources",
    run,
    flags=(
        *PRINT_FLAGS,
        Flag("filename", "list", short="f", help="Files, folders or URLs with the objects."),
        Flag("recursive", "bool", True, "Go through folders below the folder of -f.", short="R"),
        mutating.SELECTOR,
        mutating.FIELD_SELECTOR,
        mutating.ALL,
        mutating.ALL_NAMESPACES,
        mutating.LOCAL,
        Flag(
            "for", "array", help="create, delete, condition=NAME[=VALUE] or jsonpath='{...}'[=VALUE]; may be repeated."
        ),
        Flag("timeout", "duration", 30.0, "How long to wait; 0 checks once, negative waits a week."),
    ),
)
