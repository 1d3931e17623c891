"""The form of the kustomizations in tests/kubectl/kustomizations: their files, and what upstream printed of them.

    -- kustomization.yaml --
    resources: [web.yaml]
    -- web.yaml = svc.yaml --
    -- stdout --
    ...

A file may be one of the folder `common`; those that the kustomization does not bring itself are there too. `$DIR` is
the folder of the kustomization.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "kubectl/kustomizations"
_HEAD = re.compile(r"-- (\S+)(?: = (\S+))? --")


@dataclass
class Case:
    """A kustomization with what came of it."""

    files: dict[str, str] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    stdout: str = ""
    stderr: str = ""

    def lay_out(self, folder: Path) -> None:
        """Writes the files."""
        for common in (FOLDER / "common").iterdir():
            (folder / common.name).write_bytes(common.read_bytes())
        (folder / "bin.dat").write_bytes(b"\xff\xfe\0bin")
        for name, source in self.shared.items():
            _write(folder / name, (FOLDER / "common" / source).read_text())
        for name, text in self.files.items():
            _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def load(path: Path) -> Case:
    """The case of a file."""
    case, name, sections = Case(), "", dict[str, list[str]]()
    for line in path.read_text().splitlines(keepends=True):
        head = _HEAD.fullmatch(line.rstrip("\n"))
        if head is None:
            sections[name].append(line)
        elif head.group(2):
            case.shared[head.group(1)] = head.group(2)
        else:
            name = head.group(1)
            sections[name] = []
    texts = {name: "".join(lines) for name, lines in sections.items()}
    case.stdout, case.stderr = texts.pop("stdout", ""), texts.pop("stderr", "")
    case.files = texts
    return case


def dump(case: Case) -> str:
    """The text of a file."""
    parts = [f"-- {name} --\n{text}" for name, text in case.files.items()]
    parts += [f"-- {name} = {source} --\n" for name, source in case.shared.items()]
    for name in ("stdout", "stderr"):
        text = getattr(case, name)
        parts += [f"-- {name} --\n{text}"] if text else []
    return "".join(parts)
