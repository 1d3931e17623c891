"""The form of kubectl's transcripts: command lines, and what upstream's kubectl v1.36 printed for them.

    $ kubectl get pods nope
    ! Error from server (NotFound): pods "nope" not found
    = 1

`>` is a line of stdout, `!` of stderr, `=` the exit code where it is not 0; `%` at the very end: no line break.
Each file plays in a namespace of its own, in order, in the folder tests/kubectl/manifests, which is `$HERE` in what is
printed; `$TMP` is an empty folder.
What differs from run to run
(ages, times, UIDs, versions, addresses) is replaced before texts are compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "kubectl"
MANIFESTS = FOLDER / "manifests"
ENVIRONMENT = {"EDITOR": "sed -i 's/^  k: .*/  k: edited/'"}
_CHANGING = (
    (r"(?m)^E\d{4}.*\n", ""),
    (r"https://127\.0\.0\.1:\d+", "https://SERVER"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [-+]\d{4}", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"(\"?resourceVersion\"?: ?)\"\d+\"", r'\1"VERSION"'),
    (r"(resourceVersion:)\d+", r"\1VERSION"),
    (r"CLUSTER-IP +", "CLUSTER-IP "),
    (r"\b10\.\d+\.\d+\.\d+( *)", "ADDRESS "),
    (r" +(\d+[smhdy]){1,2}( ago)?( +|$)", " AGE "),
    (r"<invalid>|<unknown>", "AGE"),
    (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
    (r"(?m)[ \t]+$", ""),
)


@dataclass
class Entry:
    """One command line and what came of it."""

    command: str
    stdout: str = ""
    stderr: str = ""
    code: int = 0


def normalized(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, by in _CHANGING:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    return text


def load(path: Path) -> list[Entry]:
    """The entries of a file."""
    entries: list[Entry] = []
    for line in path.read_text().split("\n"):
        mark, text = line[:1], line[2:]
        if mark == "$":
            entries.append(Entry(text))
        elif mark == ">":
            entries[-1].stdout += f"{text}\n"
        elif mark == "!":
            entries[-1].stderr += f"{text}\n"
        elif mark == "=":
            entries[-1].code = int(text)
    for entry in entries:
        entry.stdout, entry.stderr = entry.stdout.removesuffix("%\n"), entry.stderr.removesuffix("%\n")
    return entries


def dump(entries: list[Entry]) -> str:
    """The text of a file."""
    lines: list[str] = []
    for entry in entries:
        lines.append(f"$ {entry.command}")
        for mark, text in ((">", entry.stdout), ("!", entry.stderr)):
            for line in text.splitlines(keepends=True):
                lines.append(f"{mark} {line[:-1]}".rstrip(" ") if line.endswith("\n") else f"{mark} {line}%")
        if entry.code:
            lines.append(f"= {entry.code}")
        lines.append("")
    return "\n".join(lines)


def config_for(kubeconfig: Path, namespace: str, target: Path) -> None:
    """A copy of a kubeconfig whose context has another namespace."""
    import yaml

    document = yaml.safe_load(kubeconfig.read_text())
    for entry in document["contexts"]:
        entry["context"]["namespace"] = namespace
    target.write_text(yaml.safe_dump(document))
