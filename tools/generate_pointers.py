"""Lists the fields that are pointers to plain values in Go, from a checkout of upstream's source.

    python tools/generate_pointers.py CHECKOUT > src/pybernetes/api/pointers.py

A pointer tells "not said" from zero; any other field that may be left out is left out when it is zero.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from extract_facts import PACKAGES

_PLAIN = {"string", "bool", "int", "int32", "int64", "float64"}
_NAMED = re.compile(r"^type (\w+) (string|bool|int32|int64)$", re.MULTILINE)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t\w+\s+\*(\S+)\s+`.*?json:"([^",]+),omitempty', re.MULTILINE)
_EMBEDDED = re.compile(r'^\t(\w+)\s+`json:",(?:inline|omitempty)', re.MULTILINE)


def pointers(folder: Path) -> dict[str, list[str]]:
    """Names of structs, and the names on the wire of their pointers; types of other packages may be plain or not."""
    source = "\n".join(path.read_text() for path in sorted(folder.glob("types*.go")))
    plain = _PLAIN | {name for name, _ in _NAMED.findall(source)}
    structs = dict(_STRUCT.findall(source))
    found: dict[str, list[str]] = {}
    for name in structs:
        fields = list(_fields(name, structs, plain))
        if fields:
            found[name] = fields
    return found


def _fields(name: str, structs: dict[str, str], plain: set[str]) -> Iterator[str]:
    """The pointers of a struct and of those that are part of it."""
    body = structs.get(name, "")
    yield from (wire for type_, wire in _FIELD.findall(body) if type_ in plain or "." in type_)
    for part in _EMBEDDED.findall(body):
        yield from _fields(part, structs, plain)


def main() -> None:
    checkout = Path(sys.argv[1])
    table: dict[str, list[str]] = {}
    for package in PACKAGES:
        group = "meta" if package.endswith("meta/v1") else Path(package).parent.name
        for name, fields in pointers(checkout / package).items():
            table.setdefault(f"{group}.{name}", []).extend(fields)
    print('"""Fields that tell "not said" from zero: pointers in Go.\n\nWritten by tools/generate_pointers.py.\n"""\n')
    print("from __future__ import annotations\n\nfrom typing import Final\n")
    print("POINTERS: Final[dict[str, frozenset[str]]] = {")
    for name, fields in sorted(table.items()):
        print(f"    {name!r}: frozenset({{{', '.join(map(repr, sorted(set(fields))))}}}),")
    print("}")


if __name__ == "__main__":
    main()
