"""Images that every node has: pause, which a sandbox is made of, and busybox if this machine has Debian's static one.

They are made here, from bytes of this machine, so that a cluster runs its first pod without a network.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pybernetes.cluster.images import oci
from pybernetes.cri.embedded import pause

PAUSE = "localhost/pybernetes/pause:1"
"""The sandbox image. Not registry.k8s.io's name: it is another program that does the same."""
BUSYBOX = "docker.io/library/busybox"
WGET = Path(__file__).with_name("wget.sh")


def pause_image() -> oci.Image:
    """The pause program alone, as the user `nobody` of a distroless image."""
    return oci.Image(
        names=[PAUSE],
        entries=[oci.file("pause", pause.program(oci.this_architecture()), 0o755)],
        entrypoint=["/pause"],
        user="65535:65535",
    )


def busybox_program() -> Path | None:
    """The static busybox of this machine; one that needs libraries is of no use in an image of its own."""
    found = shutil.which("busybox", path="/bin:/usr/bin:/usr/sbin:/sbin")
    if found is None:
        return None
    with open(found, "rb") as file:
        head = file.read(4096)
    return Path(found) if head[:4] == b"\x7fELF" and b"/ld-" not in head else None


SHELL, SHELLS = "busybox-shell", ("ash", "hush", "sh")
"""Where wget dies: the busybox whose shell does not have one, and what leads to it."""


def busybox_image(program: Path, *names: str) -> oci.Image:
    """A root file system of busybox and a link for each of its commands."""
    return oci.Image(names=names or busybox_names(program), entries=busybox_entries(program), command=["sh"])


def busybox_names(program: Path) -> list[str]:
    """Its image is named by its version and `latest`."""
    version = busybox_version(program)
    return [f"{BUSYBOX}:{version}", f"{BUSYBOX}:{version.rpartition('.')[0]}", f"{BUSYBOX}:latest"]


def busybox_version(program: Path) -> str:
    """`1.35.0`, from the first line of its help."""
    shown = subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    return shown.split()[1].removeprefix("v")


def busybox_commands(program: Path, folder: str, commands: Sequence[str]) -> list[oci.Entry]:
    """A link for each command; a `wget` that dies by a signal is replaced by a script that uses `nc`.

    The shell is then a second busybox, which has no `wget` of its own.
    """
    broken = "wget" in commands and wget_dies(program)
    links = [each for each in commands if each != "busybox" and not (each == "wget" and broken)]
    if not broken:
        return [oci.link(f"{folder}/{command}", "busybox") for command in links]
    return [
        *(oci.link(f"{folder}/{each}", SHELL if each in SHELLS else "busybox") for each in links),
        oci.file(f"{folder}/{SHELL}", without_wget(program), 0o755),
        oci.file(f"{folder}/wget", WGET.read_bytes(), 0o755),
    ]


def wget_dies(program: Path) -> bool:
    """Whether busybox's wget ends by a signal where no server answers: some static builds do, in the C library."""
    for flags in ([], ["-T", "1"]):
        command = [str(program), "wget", *flags, "-q", "-O", "/dev/null", "http://127.0.0.1:9/"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
        except (subprocess.TimeoutExpired, OSError):
            continue
        if done.returncode < 0:
            return True
    return False


def without_wget(program: Path) -> bytes:
    """Busybox with its wget under another name: its shell prefers commands of its own, and shall take those of PATH."""
    # The table of names is sorted, and must stay so.
    return program.read_bytes().replace(b"\0wc\0wget\0which\0", b"\0wc\0wgeu\0which\0")


def busybox_entries(program: Path) -> list[oci.Entry]:
    """The paths of the busybox image."""
    commands = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    return [
        *(oci.folder(path) for path in ("bin", "dev", "etc", "home", "proc", "sys", "usr/bin", "usr/sbin", "var")),
        oci.folder("root", 0o700),
        oci.folder("tmp", 0o1777),
        oci.file("bin/busybox", program, 0o755),
        *busybox_commands(program, "bin", commands),
        oci.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"),
        oci.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n"),
    ]
