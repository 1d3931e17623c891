"""Text that users of a cluster write into objects does not steer the terminal that shows it (CVE-2021-25743)."""

from __future__ import annotations

from pybernetes.kubectl.describing.text import Writer
from pybernetes.kubectl.printers.customcolumns import CustomColumns
from pybernetes.kubectl.printers.table import cell_text
from pybernetes.trace.why.facts import Answer

EVIL = "ok \x1b]0;title\a\x1b[2K"
SHOWN = "ok ^[]0;title\a^[[2K"


def test_cells_of_tables() -> None:
    assert cell_text(EVIL) == SHOWN
    assert cell_text(f"{EVIL}\rforged") == f"{SHOWN}..."


def test_descriptions() -> None:
    writer = Writer()
    writer.write(0, f"Message:\t{EVIL}\rforged\n")
    assert writer.text() == f"Message:\t{SHOWN}\\rforged\n"


def test_answers_of_why() -> None:
    answer = Answer(f"{EVIL}\rforged.", details=(EVIL,), fix="remove it")
    assert answer.text("Pod a/b") == f"Pod a/b: {SHOWN}\\rforged.\n{SHOWN}\nWhat would help: remove it."


def test_custom_columns() -> None:
    columns = CustomColumns.of_spec("MESSAGE:.message", no_headers=False)
    assert columns.cells({"message": f"{EVIL}\rforged"}) == [f"{SHOWN}\\rforged"]
