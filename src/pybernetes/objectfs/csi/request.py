"""Reads the mount's settings from a CSI request: pure functions of parameters, context and secrets.

The secret of a volume has `metaurl` and `name`, and for formatting `storage`, `bucket`, `access-key`, `secret-key`,
`session-token`, `format-options`; the volume's context has `folder` (part of the volume) and `mount-options`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pybernetes.csi.errors import invalid

NAME = "objectfs.csi.pybernetes.io"
SECRETS = ("access-key", "secret-key", "session-token")
# Names of Kubernetes end there; a longer one is cut, with a hash for what was cut off.
LONGEST_NAME = 63


@dataclass(frozen=True)
class Volume:
    """A volume to be mounted on a node. `id` is the cluster's name for it, `name` the file system's."""

    id: str
    name: str
    metaurl: str = field(repr=False)
    storage: str = "file"
    bucket: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    format_options: tuple[str, ...] = ()
    folder: str = ""
    options: tuple[str, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    delay: float = 0.0

    def fingerprint(self, image: str) -> str:
        """Changes when the client has to be started anew."""
        text = json.dumps([image, self.metaurl, self.name, self.options, dict(self.resources)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_state(self) -> dict[str, Any]:
        """The part the node keeps on disk: no secrets, they are in the cluster's Secret."""
        kept = asdict(self)
        return {key: value for key, value in kept.items() if key not in ("metaurl", "secrets")}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Volume:
        """The volume as the node's disk has it; JSON knows no tuples."""
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in state.items()
        }
        return cls(metaurl="", secrets={}, **plain)


def volume(id: str, context: Mapping[str, str], secrets: Mapping[str, str], flags: tuple[str, ...] = ()) -> Volume:
    """The volume of a request, or InvalidArgument with the key that is wrong."""
    for key in ("metaurl", "name"):
        if not secrets.get(key):
            raise invalid(f"the secret of volume {id} has no {key!r}")
    folder = context.get("folder", "")
    if any(part in ("", ".", "..") for part in folder.split("/")) and folder:
        raise invalid(f"volume {id}: folder {folder!r} is not a path below the volume's root")
    resources: dict[str, dict[str, str]] = {}
    for kind in ("limits", "requests"):
        for what in ("cpu", "memory"):
            value = context.get(f"mount-{what}-{kind.removesuffix('s')}")
            if value:
                resources.setdefault(kind, {})[what] = value
    try:
        delay = float(context.get("delete-delay", "0"))
        options = tuple(shlex.split(secrets.get("format-options", "")))
    except ValueError as error:
        raise invalid(f"volume {id}: {error}") from None
    words = [*context.get("mount-options", "").split(","), *flags]
    return Volume(
        id=id,
        name=secrets["name"],
        metaurl=secrets["metaurl"],
        storage=secrets.get("storage", "file"),
        bucket=secrets.get("bucket", ""),
        secrets={key: secrets[key] for key in (*SECRETS, "meta-password", "rsa-passphrase") if secrets.get(key)},
        format_options=options,
        folder=folder,
        options=tuple(word for word in words if word),
        resources=resources,
        delay=delay,
    )


def environment(found: Volume) -> dict[str, str]:
    """The secrets as the commands take them: never as arguments, which every user of the machine may read."""
    return {
        "META_URL": found.metaurl,
        **{key.upper().replace("-", "_"): value for key, value in found.secrets.items()},
    }


def format_command(found: Volume) -> list[str]:
    """The words after `pyb objectfs`; idempotent."""
    words = ["format", "env:META_URL", found.name, "--storage", found.storage]
    return [*words, "--bucket", found.bucket, *found.format_options]


def pod_name(node: str, id: str) -> str:
    return safe_name(f"objectfs-{node}-{id}")


def safe_name(text: str) -> str:
    """A name for objects and files from any text; different texts have different names."""
    plain = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    if plain == text and len(plain) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: LONGEST_NAME - 9].rstrip('-')}-{digest}"
