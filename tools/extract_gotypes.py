"""Collects what upstream's Go calls the types of fields, where our classes cannot tell, from a checkout of its source.

    python tools/extract_gotypes.py CHECKOUT > src/pybernetes/api/gotypes.txt

Go's decoder names types in its errors: `v1.PullPolicy` where the schema has a string, and the struct a field is
embedded with where JSON is flat. A line for each such field: the class, the field, the embedded structs with dots
behind them (`-` if none), then the type and, for lists and maps, those of its elements. Only facts are kept: names of
types, no text.

The result is committed, so a checkout is needed only when the API level rises.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from extract_facts import PACKAGES, Package

from pybernetes.api import gotypes
from pybernetes.api.base import Struct
from pybernetes.api.schema import fields_by_wire

PREFIXES = {"io.k8s.apimachinery.pkg.apis.": "", "io.k8s.apiextensions-apiserver.pkg.apis.": ""}
PREFIXES |= {"io.k8s.kube-aggregator.pkg.apis.": "", "io.k8s.api.": ""}
BUILTIN = re.compile(r"string|bool|byte|u?int(8|16|32|64)?|float(32|64)")


class Types:
    """The types of one Go package as its decoder prints them."""

    def __init__(self, packages: dict[str, Package], name: str) -> None:
        self.packages, self.package = packages, packages[name]
        self.version = name.rpartition(".")[2]

    def fields(self, struct: str, embedded: str = "") -> Iterator[tuple[str, str, list[str]]]:
        """Field, path of the embedded structs, type and types of elements, for each field of a struct."""
        for name, type_, (wire, *options) in self.package.structs[struct]:
            if wire == "-" or type_.endswith("TypeMeta"):
                continue
            if "inline" in options or (not name and not wire):
                yield from self.fields(type_, f"{embedded}{type_}.")
            else:
                yield wire, embedded, list(self.chain(type_))

    def chain(self, type_: str) -> Iterator[str]:
        """A type, then that of its elements, and so on."""
        type_ = type_.removeprefix("*")
        yield self.printed(type_)
        meaning = self.meaning(type_)
        if found := re.fullmatch(r"(?:\[\]|map\[[^]]*\])(.+)", meaning):
            yield from self.chain(found[1])

    def printed(self, type_: str) -> str:
        if found := re.fullmatch(r"(\[\]|map\[([^]]*)\]|\*)(.+)", type_):
            outer = f"map[{self.printed(found[2])}]" if found[2] else found[1]
            return outer + self.printed(found[3])
        if type_ == "byte":
            return "uint8"
        if BUILTIN.fullmatch(type_):
            return type_
        package, dot, name = type_.rpartition(".")
        if not dot:
            return f"{self.version}.{name}"
        version = re.search(r"v\d+$", package)
        return f"{version[0] if version else package}.{name}"

    def meaning(self, type_: str) -> str:
        """What a type with a name stands for, with names of other packages where they have some."""
        package, dot, name = type_.rpartition(".")
        if not re.fullmatch(r"\w+", name):
            return type_
        for other in [self.package] if not dot else self.packages.values():
            if name in other.named and (not dot or re.search(r"v\d+$", package)):
                return other.named[name]
        return type_


def main(checkout: Path) -> None:
    packages = {_module(prefix): Package(checkout / folder) for folder, prefix in PACKAGES.items()}
    for module, package in packages.items():
        types = Types(packages, module)
        for struct in package.structs:
            cls = getattr(import_module(f"pybernetes.api.{module}"), struct, None)
            if not (isinstance(cls, type) and issubclass(cls, Struct)):
                continue
            known = fields_by_wire(cls)
            for wire, embedded, chain in types.fields(struct):
                if wire in known and (embedded or chain != list(gotypes.derived_chain(known[wire]))):
                    print(f"{module}.{struct}", wire, embedded or "-", *chain)


def _module(prefix: str) -> str:
    for start in PREFIXES:
        prefix = prefix.removeprefix(start)
    return prefix


if __name__ == "__main__":
    main(Path(sys.argv[1]))
