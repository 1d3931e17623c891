"""A dict by kind whose values live in several modules, each imported when one of its kinds is first asked for.

The core group alone has twenty kinds; a server that is asked for ConfigMaps need not load the rules of Pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class KindTable(Mapping[str, Callable[..., Any]]):
    """The tables called `name` of the modules of a package, seen as one."""

    def __init__(self, package: str, name: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._name = name
        self._modules = modules

    def __getitem__(self, kind: str) -> Callable[..., Any]:
        module = f"{self._package}.{self._modules[kind]}"
        if find_spec(module) is None:
            raise KeyError(kind)
        table: dict[str, Callable[..., Any]] = getattr(import_module(module), self._name, {})
        return table[kind]

    def __iter__(self) -> Iterator[str]:
        return (kind for kind in self._modules if self.get(kind) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
