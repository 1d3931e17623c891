"""Which tests are nearest to a module: those of the same path under tests/, those that import it, those of the same
folder, and then the tests of the modules of src/ that import it, which are often all that a test knows.
"""

from __future__ import annotations

import re
from pathlib import Path

MOST = 12
"""More files say little more, and take long."""
REAL_PARTS = ("tests/node/", "tests/e2e/", "tests/robustness/", "tests/fuzz/")
"""Run only if nothing else is near: whole nodes and servers take minutes."""


def nearest_tests(root: Path, module: Path) -> list[str]:
    """The test files to run for a module of src/, nearest first; both relative to the root."""
    parts = _parts(module)
    found = _tests_of(root, parts)
    # Much is tested through a server or a whole store, in the folder of the same name.
    beside = sorted((root / "tests" / Path(*parts[:-1])).glob("test_*.py"))
    found += [name for name in (path.relative_to(root).as_posix() for path in beside) if name not in found]
    for user in _users(root, parts):
        found += [name for name in _tests_of(root, _parts(user)) if name not in found]
    quick = [name for name in found if not name.startswith(REAL_PARTS)]
    return (quick or found or _folder(root, parts))[:MOST]


def _parts(module: Path) -> tuple[str, ...]:
    parts = module.relative_to("src/pybernetes").with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _tests_of(root: Path, parts: tuple[str, ...]) -> list[str]:
    """Those of the same path, then those that import the module."""
    if not parts:
        return []
    dotted, package = (re.escape(".".join(("pybernetes", *each))) for each in (parts, parts[:-1]))
    imports = re.compile(rf"(import|from) {dotted}\b|from {package} import [^\n]*\b{re.escape(parts[-1])}\b")
    importing = [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").rglob("test_*.py"))
        if imports.search(path.read_text())
    ]
    importing.sort(key=lambda name: (not name.startswith(f"tests/{'/'.join(parts[:-1])}"), name))
    return list(dict.fromkeys([*_mirrors(root, parts), *importing]))


def _users(root: Path, parts: tuple[str, ...]) -> list[Path]:
    """The modules of src/ that import this one, those of its own package first."""
    if not parts:
        return []
    dotted, last = re.escape(".".join(("pybernetes", *parts))), re.escape(parts[-1])
    imports = re.compile(rf"from ({dotted}|\.+([\w.]+\.)?{last}) import|from \.+[\w.]* import [^\n]*\b{last}\b")
    source = root / "src" / "pybernetes"
    users = [path for path in sorted((source / parts[0]).rglob("*.py")) if imports.search(path.read_text())]
    users.sort(key=lambda path: path.parent != (source / Path(*parts)).parent)
    return [path.relative_to(root) for path in users]


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
