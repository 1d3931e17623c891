"""The common parts of all kinds of volumes: their result, and their error.

A volume of a pod becomes a `MountedVolume`: a path on this node that containers get bind-mounted, or an image that
the runtime mounts by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pybernetes.api.gocompat.quote import quote


class VolumeError(Exception):
    """The volumes of a pod cannot be made ready. The text is that of the event, with upstream's words.

    `retry_after` says after how many seconds another try makes sense; a change of an object that is waited for (a
    ConfigMap that was missing) is reported earlier, through `changed`.
    """

    def __init__(self, message: str, *, reason: str = "FailedMount", retry_after: float = 0.5) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.retry_after = retry_after


class StepError(Exception):
    """One step of making a volume ready has failed."""

    def __init__(self, step: str, volume: str, why: str) -> None:
        super().__init__(f"{step} for volume {quote(volume)} : {why}")


class ProcessingError(Exception):
    """It cannot even be said what a volume is: its claim is not there, or not bound."""


@dataclass(frozen=True, slots=True)
class MountedVolume:
    """A volume that containers may use now."""

    name: str
    path: Path
    """On the node; for `device` the block device, for `image` nothing."""
    read_only: bool = False
    """Containers get it read-only whatever they ask for."""
    image: str = ""
    """The reference of an image volume."""
    device: bool = False
    """For `volumeDevices`, not for `volumeMounts`."""


Volumes = Mapping[str, MountedVolume]
"""By the name in `spec.volumes`."""
