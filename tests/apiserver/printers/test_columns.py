"""The columns of every resource, held to `columns.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest
from apiserver.printers.rows import table

from pybernetes.api import scheme
from pybernetes.api.resources import Resource

LISTED = [each for each in scheme.resources() if "list" in each.verbs]
EXPECTED = dict(
    line.split(": ", 1)
    for line in (Path(__file__).parent / "columns.txt").read_text().splitlines()
    if not line.startswith("#")
)


def written(column: dict[str, object]) -> str:
    marks = [str(column["type"])] if column["type"] != "string" else []
    if (column["format"] == "name") != (column["name"] == "Name"):
        marks.append(str(column["format"]) or "no format")
    if column["priority"]:
        marks.append("wide" if column["priority"] == 1 else f"priority {column['priority']}")
    return f"{column['name']} [{' '.join(marks)}]" if marks else str(column["name"])


@pytest.mark.parametrize("of", LISTED, ids=lambda each: f"{each.fullname}-{each.version}")
def test_columns(of: Resource) -> None:
    columns = table(of)["columnDefinitions"]
    assert ", ".join(map(written, columns)) == EXPECTED[f"{of.fullname}/{of.version}"]


def test_the_file_has_no_other_resources() -> None:
    assert set(EXPECTED) == {f"{each.fullname}/{each.version}" for each in LISTED}
