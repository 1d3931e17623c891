"""Which tests are nearest to a module: those of the same path under tests/, then those that import it."""

from __future__ import annotations

import re
from pathlib import Path

MOST = 8
"""More files say little more, and take long."""
REAL_PARTS = ("tests/node/", "tests/e2e/", "tests/robustness/", "tests/fuzz/")
"""Run only if nothing else is near: whole nodes and servers take minutes."""


def nearest_tests(root: Path, module: Path) -> list[str]:
    """The test files to run for a module of src/, nearest first; both relative to the root."""
    parts = module.relative_to("src/pybernetes").with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    mirrored = [*_mirrors(root, parts)]
    dotted = ".".join(("pybernetes", *parts))
    last = re.escape(parts[-1]) if parts else ""
    package = re.escape(".".join(("pybernetes", *parts[:-1])))
    imports = re.compile(rf"(import|from) {re.escape(dotted)}\b|from {package} import [^\n]*\b{last}\b")
    importing = [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").rglob("test_*.py"))
        if imports.search(path.read_text())
    ]
    near = sorted(importing, key=lambda name: (not name.startswith(f"tests/{'/'.join(parts[:-1])}"), name))
    found = list(dict.fromkeys([*mirrored, *near]))
    quick = [name for name in found if not name.startswith(REAL_PARTS)]
    return (quick or found or _folder(root, parts))[:MOST]


def _mirrors(root: Path, parts: tuple[str, ...]) -> list[str]:
    if not parts:
        return []
    folder = root / "tests" / Path(*parts[:-1])
    names = [folder / f"test_{parts[-1]}.py", *sorted(folder.glob(f"test_{parts[-1]}_*.py"))]
    names += sorted((folder / parts[-1]).glob("test_*.py"))
    if len(parts) > 1:
        names += [folder.parent / f"test_{parts[-2]}.py"]
    return [path.relative_to(root).as_posix() for path in names if path.exists()]


def _folder(root: Path, parts: tuple[str, ...]) -> list[str]:
    """The tests of the nearest folder that has any."""
    for length in range(len(parts) - 1, 0, -1):
        found = sorted((root / "tests" / Path(*parts[:length])).rglob("test_*.py"))
        if found:
            return [path.relative_to(root).as_posix() for path in found]
    return []
