"""Everything that runs in a test cluster takes its time from the module `time`, which the test kit replaces."""

from __future__ import annotations

import ast

import tools

SOURCE = tools.ROOT / "src" / "pybernetes"
PACKAGES = ("api", "apiserver", "client", "component", "controllers", "kubelet/simulated", "net", "scheduler", "store")
FORBIDDEN = ("now", "utcnow", "today")
"""Of `datetime` and `date`: they ask the machine, below Python."""


def offenders(source: str) -> list[str]:
    """Calls in a module that ask the machine for the time of day, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN:
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name in ("datetime", "date"):
                found.append(f"{node.lineno}: {name}.{node.func.attr}()")
    return found


def test_nothing_of_the_control_plane_asks_the_machine_for_the_time() -> None:
    modules = [path for name in PACKAGES for path in sorted((SOURCE / name).rglob("*.py"))]
    assert len(modules) > 500
    found = [f"{path.relative_to(SOURCE)}:{each}" for path in modules for each in offenders(path.read_text())]
    assert not found, "take it from a Clock, or from time.time:\n" + "\n".join(found)


def test_the_checker_finds_what_it_looks_for() -> None:
    source = "import datetime\na = datetime.datetime.now()\nb = date.today()\nc = clock.now()\nd = datetime.utcnow()\n"
    assert offenders(source) == ["2: datetime.now()", "3: date.today()", "5: datetime.utcnow()"]
