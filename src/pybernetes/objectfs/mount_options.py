"""The options of a mount: flags of `pyb objectfs mount`, words of `-o` and of /etc/fstab, in one place."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.fuse import mount_point

KIND = "objectfs"
MODES = ("noatime", "relatime", "strictatime")
METRICS = "127.0.0.1:9567"
# What mount(8), fstab and other clients say, and what holds here anyway.
IGNORED = (
    "",
    "rw",
    "nodiratime",
    "allow_other",
    "default_permissions",
    "_netdev",
    "nofail",
    "defaults",
    "auto",
    "noauto",
    "user",
)


@dataclass
class MountOptions:
    """Everything that a server needs to know; `flags` are those of mount(2)."""

    meta: str
    folder: str
    flags: int = 0
    xattrs: bool = False
    background: bool = True
    cache_dir: str = "/var/objectfsCache"
    cache_size: int = 10240
    free_space_ratio: float = 0.1
    attr_cache: float = 1.0
    entry_cache: float = 1.0
    metrics: str = METRICS
    access_log: str = ""
    atime_mode: str = "noatime"
    upload_limit: int = 0
    download_limit: int = 0
    source: str = ""
    log: str = "/var/log/objectfs.log"
    over: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> MountOptions:
        return cls(**json.loads(text))


# name: (type, help)
VALUES: dict[str, tuple[type, str]] = {
    "cache-dir": (str, "folder of cached blocks and pending writes"),
    "cache-size": (int, "MiB of cached blocks; 0 is no cache"),
    "free-space-ratio": (float, "of the cache's disk, to be left free"),
    "attr-cache": (float, "seconds for which the kernel keeps attributes"),
    "entry-cache": (float, "seconds for which the kernel keeps names"),
    "metrics": (str, "ADDRESS:PORT of Prometheus metrics, or none"),
    "access-log": (str, "file with one line for each operation"),
    "atime-mode": (str, f"whether reads change the access times of files: {', '.join(MODES)}"),
    "upload-limit": (int, "Mbit/s to the object store; 0 is the volume's"),
    "download-limit": (int, "Mbit/s from the object store; 0 is the volume's"),
    "log": (str, "log file of a mount in the background"),
    "source": (str, "what /proc/mounts names in front of the volume"),
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="OPTION[,...]")
    parser.add_argument("--enable-xattr", action="store_true", help="extended attributes")
    parser.add_argument("--no-bgjob", action="store_true", help="leave clean-up and compaction to other clients")
    parser.add_argument("--read-only", action="store_true")
    for name, (kind, text) in VALUES.items():
        default = getattr(MountOptions, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{text} ({default})" if default else text)


def parse(arguments: argparse.Namespace) -> MountOptions:
    """The flags and `-o` words together; an unknown word is an error."""
    found = MountOptions(arguments.meta, os.path.abspath(arguments.folder))
    found.flags = mount_point.MS_RDONLY if arguments.read_only else 0
    found.xattrs, found.background = arguments.enable_xattr, not arguments.no_bgjob
    for name in VALUES:
        field = name.replace("-", "_")
        setattr(found, field, getattr(arguments, field))
    for word in ",".join(arguments.options).split(","):
        _apply(found, word)
    if not 0 <= found.free_space_ratio < 1:
        raise ObjectFSError(f"free-space-ratio {found.free_space_ratio}: a part from 0 to 1 is wanted")
    if found.atime_mode not in MODES:
        raise ObjectFSError(f"atime-mode {found.atime_mode!r}: one of {', '.join(MODES)} is wanted")
    for name in ("cache_size", "attr_cache", "entry_cache", "upload_limit", "download_limit"):
        if getattr(found, name) < 0:
            raise ObjectFSError(f"{name.replace('_', '-')} cannot be negative")
    return found


def _apply(found: MountOptions, word: str) -> None:
    name, _, value = word.partition("=")
    if name in IGNORED or name.startswith("x-"):
        return
    if name in MODES:
        found.atime_mode = name
    if name in mount_point.FLAGS:
        found.flags |= mount_point.FLAGS[name]
    elif name == "enable-xattr":
        found.xattrs = True
    elif name == "no-bgjob":
        found.background = False
    elif name in VALUES:
        kind = VALUES[name][0]
        try:
            setattr(found, name.replace("-", "_"), kind(value))
        except ValueError:
            raise ObjectFSError(f"mount option {word!r}: not a number") from None
    else:
        raise ObjectFSError(f"mount option {name!r} is unknown")
