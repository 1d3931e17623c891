"""The services that volumes need of their node: folders, objects and tokens, the user of a pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.client.client import Client
from pybernetes.client.keys import uid_of
from pybernetes.component import offload

from ..node.facts import NodeFacts
from ..runtime.types import all_containers
from ..service_account_tokens import Tokens
from ..watched_objects import Objects

if TYPE_CHECKING:
    from ..csi.volumes import CSIVolumes

LOOK_WITHIN: Final = 10.0
"""Seconds for a look at a volume: it costs a healthy file system milliseconds."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Host:
    """The node, for volumes. The folders are upstream's, so that tools find what they look for."""

    root: Path
    facts: NodeFacts
    client: Client | None
    objects: Objects | None
    tokens: Tokens
    event: Callable[[Pod, str, str, str], None]
    image_volumes: bool = False
    """Whether the runtime can mount images."""
    csi: CSIVolumes | None = None
    """Volumes of CSI drivers; None where there are none."""
    shown: dict[str, dict[str, int]] = field(default_factory=dict)
    """By pod: the bytes of each volume that shows objects of the API."""

    async def look(self, pod: Pod, what: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on a path below which a pod may have mounted a hung file system: in a thread.

        Raises TimeoutError, which names `what`, if there is no answer in time.
        """
        try:
            return await offload.run(f"pod {uid_of(pod)}", LOOK_WITHIN, function, *args, **kwargs)
        except offload.Overdue:
            raise TimeoutError(f"{what} did not answer within {LOOK_WITHIN:g} s") from None

    def pod_folder(self, uid: str) -> Path:
        """Everything of a pod."""
        return self.root / "pods" / uid

    def volume_folder(self, uid: str, plugin: str, name: str) -> Path:
        """Where a volume is; `plugin` is the last part of its name, such as `empty-dir`."""
        return self.pod_folder(uid) / "volumes" / f"kubernetes.io~{plugin}" / name

    def meta_folder(self, uid: str, name: str) -> Path:
        """Where it is noted that an emptyDir has been made ready."""
        return self.pod_folder(uid) / "plugins" / "kubernetes.io~empty-dir" / name


def fs_group(pod: Pod) -> int | None:
    """The group that volumes are given to."""
    context = pod.spec.security_context if pod.spec else None
    return context.fs_group if context else None


def fs_user(pod: Pod) -> int | None:
    """The user that all containers run as, if it is one and they say so: tokens become that user's."""
    spec = pod.spec or PodSpec()
    usual = spec.security_context.run_as_user if spec.security_context else None
    users = set()
    for container in all_containers(spec):
        own = container.security_context.run_as_user if container.security_context else None
        users.add(usual if own is None else own)
    return users.pop() if len(users) == 1 else None
