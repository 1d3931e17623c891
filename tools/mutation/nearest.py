"""Which tests are nearest to a module: those of the same path under tests/, those that import it, tables of cases that
are meant for its package, those of the same folder, and then the tests of the modules of src/ that import it, which are
often all that a test knows. Farther are the other tests that name what the module defines, and those of its package.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

MOST = 12
"""More files say little more, and take long."""
FARTHER = 30
"""So many more files for a break that the nearest did not notice."""
VERBS = ("tests/apiserver/test_crud.py", "tests/apiserver/test_deleting.py", "tests/apiserver/test_list.py")
TABLES = {
    "api": ("tests/apiserver/strategies/test_cases.py",),
    "apiserver/strategies": ("tests/apiserver/strategies/test_cases.py",),
    "apiserver/verbs": VERBS,
    "apiserver/pipeline": VERBS,
}
"""Tests that read their cases from files, and reach a package through helpers: no import shows what they are about."""
REAL_PARTS = ("tests/node/", "tests/e2e/", "tests/robustness/", "tests/fuzz/")
"""Run only if nothing else is near: whole nodes and servers take minutes."""


def nearest_tests(root: Path, module: Path) -> list[str]:
    """The test files to run for a module of src/, nearest first; both relative to the root."""
    parts = _parts(module)
    found = _tests_of(root, parts)
    tables = [
        name
        for package, names in TABLES.items()
        if parts[: package.count("/") + 1] == (*package.split("/"),)
        for name in names
    ]
    # Behind what imports the module itself, before its neighbours: a table is slow, and tries much.
    found += [name for name in tables if name not in found and (root / name).exists()]
    # Much is tested through a server or a whole store, in the folder of the same name.
    beside = sorted((root / "tests" / Path(*parts[:-1])).glob("test_*.py"))
    found += [name for name in (path.relative_to(root).as_posix() for path in beside) if name not in found]
    for user in _users(root, parts):
        found += [name for name in _tests_of(root, _parts(user)) if name not in found]
    quick = [name for name in found if not name.startswith(REAL_PARTS)]
    return (quick or found or _folder(root, parts))[:MOST]


def farther_tests(root: Path, module: Path) -> list[str]:
    """The test files to run when the nearest noticed nothing: those that name most of what the module defines, then
    the rest of its package's; whole nodes last.
    """
    parts, near = _parts(module), set(nearest_tests(root, module))
    names = _defined(root / module)
    ranked: list[tuple[bool, int, bool, str]] = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        name, words = path.relative_to(root).as_posix(), set(re.findall(r"\w+", path.read_text()))
        beside = bool(parts) and name.startswith(f"tests/{parts[0]}/")
        if name not in near and (beside or names & words):
            ranked.append((name.startswith(REAL_PARTS), -len(names & words), not beside, name))
    return [name for *_, name in sorted(ranked)][:FARTHER]


def _defined(file: Path) -> set[str]:
    """The public names of a module, and its own name in the style of Kubernetes' plugins and kinds."""
    found = {"".join(word.capitalize() for word in file.stem.split("_"))}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found.add(node.name)
    return {name for name in found if len(name) > 5}


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
