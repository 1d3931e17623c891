"""A user who is not root, with a home and a Python of his own, on this machine or on one without user namespaces.

The second is a user namespace in which all users are there and no other user namespace may be made
(`user.max_user_namespaces`), so that nothing of the machine has to be changed for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tools

UID = 47110 + os.getpid() % 10_000
"""Another for each test worker: what runs as him is all his."""
_NEWUSER = 0x10000000


class Somebody:
    """`pyb(...)` and `kubectl(...)` run as him; he lives in the user namespace of the process `namespace`."""

    def __init__(self, folder: Path, namespace: int | None) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        os.chown(self.home, UID, UID)
        self.python = _python(folder)
        self.level = self.said = ""
        self.ingress_port = 0
        """How his pods are kept apart, and what `up` said; set by who started a cluster as him."""
        self.data = self.home / ".pybernetes" / "pybernetes"
        enter = ["nsenter", f"--user=/proc/{namespace}/ns/user", "--preserve-credentials"] if namespace else []
        user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        environment = {"HOME": str(self.home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        self.before = [*enter, *user, "env", "-i", *(f"{name}={value}" for name, value in environment.items())]

    def run(self, *words: str, code: int | None = 0, timeout: float = 120) -> str:
        """Runs a program; what it wrote."""
        done = subprocess.run(
            [*self.before, *words],
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        assert code is None or done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{self.logs()}"
        return done.stdout

    def pyb(self, *words: str, code: int | None = 0) -> str:
        """Runs `pyb`."""
        return self.run(str(self.python), "-P", "-m", "pybernetes", *words, code=code)

    def kubectl(self, *words: str, code: int | None = 0) -> str:
        """Runs kubectl."""
        return self.run(tools.kubectl(), *words, code=code)

    def get(self, *words: str) -> Any:
        """What kubectl shows, as an object."""
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Makes objects."""
        file = self.home / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        file.chmod(0o644)
        self.kubectl("apply", "-f", str(file))

    def logs(self) -> str:
        """The ends of all logs, for who has to find out what went wrong."""
        found = sorted(self.data.glob("logs/*.log"))
        return "".join(f"\n{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in found)

    def processes(self) -> list[str]:
        """The programs that run as him."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if path.stat().st_uid == UID and (words := (path / "cmdline").read_bytes()):
                    found.append(words.replace(b"\0", b" ").decode(errors="replace"))  # one that ends shows anything
        return found


@contextlib.contextmanager
def somebody(*, namespaces: bool) -> Iterator[Somebody]:
    """Him, until the test ends; skips what this machine cannot show."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("nsenter") is None:
        pytest.skip("only root can become another user (setpriv, nsenter)")
    with tempfile.TemporaryDirectory(prefix="pyb-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        him = Somebody(folder, None if namespaces else stack.enter_context(_without_namespaces()))
        if namespaces and "0" not in him.run("unshare", "-Urnmp", "--fork", "id", "-u", code=None).split():
            pytest.skip("this machine has no user namespaces for other users")
        try:
            yield him
        finally:
            him.pyb("down", "--purge", code=None)


def _python(folder: Path) -> Path:
    """A world-executable interpreter, with our packages: root's may be in root's home."""
    own = Path(os.path.realpath(sys.executable))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [own, *(Path(each) / version for each in ("/usr/bin", "/usr/local/bin"))]
    found = next((each for each in candidates if each.exists() and _open_to_all(each)), None)
    if found is None or not _open_to_all(tools.ROOT / "src"):
        pytest.skip(f"there is no {version} that is world-executable")
    site = next(Path(each) for each in sys.path if each.endswith("site-packages"))
    venv = folder / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib" / version).mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"home = {found.parent}\ninclude-system-site-packages = false\n")
    (venv / "bin" / "python").symlink_to(found)
    (venv / "lib" / version / "site-packages").symlink_to(site)
    return venv / "bin" / "python"


def _open_to_all(path: Path) -> bool:
    return all(each.stat().st_mode & 0o005 == 0o005 for each in [path, *path.parents])


WITHOUT_NAMESPACES = f"""
import ctypes, sys
from pathlib import Path

if ctypes.CDLL(None).unshare({_NEWUSER}) == 0:
    print("made", flush=True)
    sys.stdin.readline()
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    print("forbidden", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def _without_namespaces() -> Iterator[int]:
    """A process in a user namespace with all users, in which no user may make another.

    Not a fork of this one: gRPC, once used, starts its threads again there, and who has threads cannot make one.
    """
    command = [sys.executable, "-c", WITHOUT_NAMESPACES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if child.stdout.readline():
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{child.pid}/{name}").write_text("0 0 4294967295")
            child.stdin.write("mapped\n")
            child.stdin.flush()
        if not child.stdout.readline():
            pytest.skip("no user namespace can be made in which there are none")
        yield child.pid
