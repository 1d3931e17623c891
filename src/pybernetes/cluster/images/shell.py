"""`shell`: an image of this machine's own sh and small tools, so that there is one to begin with wherever Python is.

Where there is a static busybox, its image has this name too. Else it is what is found of PROGRAMS, with the libraries
that they link to.
"""

from __future__ import annotations

import os

from pybernetes.cluster.images import oci
from pybernetes.cluster.images.collected import Collected, base, library_cache
from pybernetes.cluster.node.programs import find

NAME = "docker.io/library/shell:latest"
PROGRAMS = (
    *("sh", "awk", "base64", "basename", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du"),
    *("echo", "env", "expr", "false", "find", "grep", "head", "hostname", "id", "kill", "ln", "ls", "md5sum", "mkdir"),
    *("mkfifo", "mktemp", "mv", "nproc", "printf", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq"),
    *("sha256sum", "sleep", "sort", "stat", "stty", "sync", "tail", "tar", "tee", "test", "timeout", "touch", "tr"),
    *("true", "tty", "uname", "uniq", "wc", "whoami", "xargs", "yes"),
)


def image() -> oci.Image | None:
    """The image, None on a machine without a shell."""
    collected = Collected()
    for name in PROGRAMS:
        path = find(name)
        while path is not None:
            collected.add(path)
            # Each step of a link is needed: `awk` leads to `mawk` by way of /etc/alternatives.
            path = os.path.join(os.path.dirname(path), os.readlink(path)) if os.path.islink(path) else None
    if find("sh") is None:
        return None
    collected.add_libraries(library_cache())
    return oci.Image(names=[NAME], entries=[*base(), *collected.entries()], command=["sh"])
