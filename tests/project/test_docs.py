"""The documentation is true where a program can tell: paths, names, links, commands, the list of pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

import tools
from pybernetes.cluster.cli import COMMANDS

SOURCE = tools.ROOT / "src" / "pybernetes"
DOCS = tools.ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *tools.ROOT.glob("*.md"), tools.ROOT / "examples" / "README.md"])
ROW = re.compile(r"^\| (?P<what>[^|]+) \| `(?P<path>[\w/]+\.py)` \| `(?P<name>[\w.]+)` \|$", re.M)


def names(path: Path) -> set[str]:
    """What a module defines: functions, classes, their methods, constants."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(f"{node.name}.{each.name}")
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return found


@pytest.mark.parametrize("page", ["where.md", "walk.md"])
def test_each_line_names_what_is_there(page: str) -> None:
    rows = list(ROW.finditer((DOCS / page).read_text()))
    assert len(rows) >= 30
    wrong = []
    for row in rows:
        path = SOURCE / row["path"]
        if not path.exists():
            wrong.append(f"{row['what']}: there is no src/pybernetes/{row['path']}")
        elif row["name"] not in names(path):
            wrong.append(f"{row['what']}: src/pybernetes/{row['path']} has no {row['name']}")
    assert not wrong, f"docs/{page}:\n" + "\n".join(wrong)


def test_the_list_answers_forty_questions() -> None:
    rows = ROW.findall((DOCS / "where.md").read_text())
    assert len(rows) >= 40
    assert len({what for what, _, _ in rows}) == len(rows)


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(tools.ROOT)}: {target}")
    assert not broken, "\n".join(broken)


def test_paths_of_how_tos_exist() -> None:
    missing = []
    for page in sorted(DOCS.glob("howto-*.md")):
        for path in re.findall(
            r"`((?:api|apiserver|client|controllers|kubelet|scheduler)/[\w/]+(?:\.py|\.txt|/))`", page.read_text()
        ):
            if not (SOURCE / path).exists():
                missing.append(f"{page.name}: src/pybernetes/{path}")
        for path in re.findall(r"`((?:tests|tools|examples)/[\w/.]+)`", page.read_text()):
            if not (tools.ROOT / path).exists():
                missing.append(f"{page.name}: {path}")
    assert not missing, "\n".join(missing)
    assert len(list(DOCS.glob("howto-*.md"))) == 5


def test_the_menu_of_the_site_names_pages_that_exist_once() -> None:
    config = yaml.safe_load((tools.ROOT / "mkdocs.yml").read_text())

    def pages(entries: list[object]) -> list[str]:
        found: list[str] = []
        for each in entries:
            for value in each.values() if isinstance(each, dict) else [each]:
                found += pages(value) if isinstance(value, list) else [str(value)]
        return found

    listed = pages(config["nav"])
    assert [each for each in listed if not (DOCS / each).is_file()] == []
    assert len(set(listed)) == len(listed)


def test_commands_of_the_documentation_exist() -> None:
    unknown = set()
    for page in PAGES:
        for word in re.findall(r"(?:^|[`\s])(?:\./)?pyb ([a-z][a-z-]+)", page.read_text()):
            if word not in COMMANDS:
                unknown.add(f"{page.relative_to(tools.ROOT)}: pyb {word}")
    assert not unknown, "\n".join(sorted(unknown))
