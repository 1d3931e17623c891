"""Shared by the checks: names of the containers at fault, and the wording of messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from pybernetes.api.core.containers import AnyContainer, all_containers
from pybernetes.api.core.v1 import PodSpec

Annotations = Mapping[str, str]
Violation = tuple[str, str]
"""The violation, in short and in detail."""
Judge = Callable[[Annotations, PodSpec], Violation | None]


def quoted(items: Iterable[str]) -> str:
    """Each in quotes."""
    return ", ".join(f'"{each}"' for each in items)


def plural(word: str, items: Collection[str], many: str = "") -> str:
    """The word for so many; `many` where it is not just an s more."""
    return word if len(items) == 1 else many or f"{word}s"


def named(bad: list[str]) -> str:
    """These containers."""
    return f"{plural('container', bad)} {quoted(bad)}"


def offending(spec: PodSpec, wrong: Callable[[AnyContainer], bool]) -> list[str]:
    """The names of the containers that are wrong."""
    return [each.name or "" for each in all_containers(spec) if wrong(each)]


def setters(pod: bool, containers: list[str]) -> str:
    """The subject of a message: the pod, containers, or both; empty if there is none."""
    return " and ".join([*(["pod"] if pod else []), *([named(containers)] if containers else [])])


def for_windows(spec: PodSpec) -> bool:
    """Whether the pod is for Windows nodes, where the fields in question cannot be set."""
    return spec.os is not None and spec.os.name == "windows"


def unless(exempt: Callable[[PodSpec], bool], judge: Judge) -> Judge:
    """A check that some pods are exempt from."""
    return lambda annotations, spec: None if exempt(spec) else judge(annotations, spec)


def in_user_namespace(spec: PodSpec) -> bool:
    """Whether root in the pod is an unprivileged user on the node."""
    return spec.host_users is False
