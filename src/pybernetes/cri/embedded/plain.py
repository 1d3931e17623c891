"""Runs a container without namespaces: as a plain process of the node's user.

Its root is a folder with a copy of the image, given to it in ROOT; it cannot be locked into it. What can be is
taken from there: the program, the folders of PATH, the working folder, and each word of the command that is a path.
Volumes are links in that folder. Users, capabilities, seccomp and a read-only root cannot be had.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Mapping
from typing import Any, NoReturn

from pybernetes.component.removal import remove_tree

from . import syscalls as sys
from .inside import PATH, USUAL_SIGNALS, Refused, Report, Spec, reason, take_terminal

ROOT = "PYBERNETES_ROOT"
MARK = "PYBERNETES_CONTAINER"
"""In the environment of each process of a container, where they are found by it: the container's id."""
NODE = "PYBERNETES_NODE"
"""In the environment of everything on a node: its folder."""


def sandbox(spec: Spec, report: Report) -> NoReturn:
    """Becomes the process that stands for a pod."""
    program = f"{spec['rootfs']}/pause"
    report({}, [])  # without a reader it ends here
    os.execve(program, [program], _marks(spec))


def container(spec: Spec, sandbox: int, report: Report) -> NoReturn:
    """Becomes the first process of a container; the sandbox has nothing that it could join."""
    root = os.open(spec["upper"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for each in spec["mounts"]:
        _link(root, each)
    _run(spec, report)


def command(spec: Spec, target: int, report: Report) -> NoReturn:
    """Becomes a command beside a container."""
    _run(spec, report)


def translated(path: str, root: str, mounts: list[Mapping[str, Any]]) -> str:
    """Where a path of a container is: in one of its volumes, or in its root."""
    path = os.path.normpath(path)
    inside = [each for each in mounts if f"{path}/".startswith(f"{each['target'].rstrip('/')}/")]
    if inside:
        volume = max(inside, key=lambda each: len(each["target"]))
        return str(volume["source"]) + path[len(volume["target"].rstrip("/")) :]
    return root + path


def _marks(spec: Spec) -> dict[str, str]:
    return {MARK: spec["id"], NODE: os.environ.get(NODE, "")}


def _run(spec: Spec, report: Report) -> NoReturn:
    root, mounts = spec["upper"], spec["mounts"]
    environment = {"PATH": PATH, "HOME": root, **dict(spec["env"])}
    environment["PATH"] = ":".join(root + folder for folder in environment["PATH"].split(":") if folder)
    environment |= {ROOT: root, MARK: spec["container"], NODE: os.environ.get(NODE, "")}
    if spec["tty"]:
        environment.setdefault("TERM", "xterm")
        _terminal(report)
    folder = translated(spec["cwd"] or "/", root, mounts)
    if spec.get("make_cwd"):
        os.makedirs(folder, exist_ok=True)
    report({"user": [os.getuid(), os.getgid(), os.getgroups()]}, [])
    name, *words = spec["args"]
    program = _find(name, environment["PATH"], translated(name, root, mounts))
    words = [_word(each, root, mounts) for each in words]
    try:
        os.chdir(folder)
    except OSError as error:
        shown = spec["cwd"] or "/"
        raise Refused(f'chdir to cwd ("{shown}") set in config.json failed: {reason(error)}') from None
    os.umask(0o022)
    if spec["no_new_privs"]:
        sys.prctl(sys.PR_SET_NO_NEW_PRIVS, 1)
    for number in USUAL_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    os.execve(program, [name, *words], {os.fsencode(key): os.fsencode(value) for key, value in environment.items()})


def _word(word: str, root: str, mounts: list[Mapping[str, Any]]) -> str:
    if not word.startswith("/"):
        return word
    found = translated(word, root, mounts)
    return found if os.path.lexists(found) else word


def _find(name: str, path: str, whole: str) -> str:
    if "/" in name:
        try:
            found = os.stat(whole)
        except OSError as error:
            raise Refused(f'exec: "{name}": stat {name}: {reason(error)}') from None
        if stat.S_ISDIR(found.st_mode):
            raise Refused(f'exec: "{name}": is a directory')
        if not os.access(whole, os.X_OK):
            raise Refused(f'exec: "{name}": permission denied')
        return whole
    for folder in path.split(":"):
        program = f"{folder}/{name}"
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    raise Refused(f'exec: "{name}": executable file not found in $PATH')


def _link(root: int, mount: Mapping[str, Any]) -> None:
    """Shows a volume in the root; links of the image lead nowhere but into it."""
    target = mount["target"].strip("/")
    if mount["layers"]:
        raise Refused(f"the volume at {mount['target']} is an image: such volumes need root")
    if not target:
        return
    parts = target.split("/")
    parent = os.dup(root)
    try:
        for index, name in enumerate(parts[:-1], 1):
            whole = "/".join(parts[:index])
            try:
                deeper = sys.open_in_root(root, whole, os.O_PATH | os.O_DIRECTORY)
            except FileNotFoundError:
                os.mkdir(name, 0o755, dir_fd=parent)
                deeper = sys.open_in_root(root, whole, os.O_PATH | os.O_DIRECTORY)
            os.close(parent)
            parent = deeper
        remove_tree(parts[-1], parent)
        os.symlink(mount["source"], parts[-1], dir_fd=parent)
    except OSError as error:
        source = mount["source"]
        raise Refused(f'error linking "{source}" to rootfs at "{mount["target"]}": {reason(error)}') from None
    finally:
        os.close(parent)


def _terminal(report: Report) -> None:
    """A terminal of this machine as the three streams; the launcher gets the other end."""
    master, slave = os.openpty()
    report({"terminal": True}, [master])
    os.close(master)
    take_terminal(slave)
