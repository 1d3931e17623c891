"""`pyb cni PLUGIN`: one of our network plugins as a program; `pyb cni install FOLDER`: as files a runtime can call;
`pyb cni add NETWORK NETNS` and others: by hand (`tool.py`).

A runtime such as containerd calls `<bin_dir>/<type>`. The files that `install` writes start Python without its site
packages, since plugins need the standard library alone and are started anew for each pod.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pybernetes

from .skel import BUILT_IN, run

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path  # 5 ms that a plugin need not pay

_LONGEST_INTERPRETER = 250  # the kernel reads 256 bytes of a file to find out how to start it

_USAGE = f"""usage: pyb cni PLUGIN
       pyb cni install FOLDER
       pyb cni add|check|del|status NETWORK [NETNS]
       pyb cni dhcp-daemon [--socket PATH] [--state-dir FOLDER]

Network plugins (CNI) of our own: {", ".join(sorted(BUILT_IN))}.
The first form is called by a runtime: what to do is in the environment (CNI_COMMAND and others), the configuration
on stdin. The second writes the plugins as executables into a folder, for a runtime's bin_dir. The third connects a
network namespace by hand; `pyb cni add --help` tells more. The fourth keeps the leases of the plugin dhcp."""


def main(argv: list[str]) -> int:
    """Runs a plugin or installs all."""
    if len(argv) == 1 and argv[0] in BUILT_IN:
        return plugin(argv[0], "")
    if len(argv) == 2 and argv[0] == "install":
        from pathlib import Path

        for file in install(Path(argv[1])):
            print(file)
        return 0
    if argv and argv[0] in ("add", "check", "del", "status"):
        from . import tool  # what a plugin need not pay

        return tool.main(argv)
    if argv and argv[0] == "dhcp-daemon":
        from .dhcp import daemon

        return daemon.main(argv[1:])
    asked = argv in (["-h"], ["--help"])
    print(_USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


def plugin(name: str, own: str) -> int:
    """Runs a plugin with this process's environment; plugins in the folder `own` are ours and need no process."""
    return run(name, os.environ, sys.stdin.buffer, sys.stdout, sys.stderr, own)


def install(folder: Path, names: Collection[str] = BUILT_IN) -> list[Path]:
    """Writes plugins as executables into the folder; what was written."""
    interpreter = f"#!{sys.executable} -IS"
    if len(interpreter) > _LONGEST_INTERPRETER:
        raise OSError(
            f"the path of the Python interpreter is too long for the first line of a program: {sys.executable}"
        )
    source = os.path.dirname(os.path.dirname(os.path.abspath(pybernetes.__file__)))
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in sorted(names):
        lines = [
            interpreter,
            "import os, sys",
            f"sys.path.insert(0, {source!r})",
            "from pybernetes.cni.command import plugin",
            f"sys.exit(plugin({name!r}, os.path.dirname(os.path.abspath(__file__))))",
        ]
        fresh = folder / f".{name}.{os.getpid()}"
        fresh.write_text("\n".join(lines) + "\n")
        fresh.chmod(0o755)
        fresh.replace(folder / name)  # a plugin that is running keeps the old file
        written.append(folder / name)
    return written
