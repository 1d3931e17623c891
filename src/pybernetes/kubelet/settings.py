"""The kubelet's settings: those of the configuration file, and those that only flags have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .config.types import KubeletConfiguration


@dataclass(slots=True)
class KubeletSettings:
    """One kubelet's settings; `config` has its defaults."""

    config: KubeletConfiguration
    node_name: str
    hostname: str
    node_ips: Sequence[str]
    root_dir: Path = Path("/var/lib/kubelet")
    cert_dir: Path = Path("/var/lib/kubelet/pki")
    container_logs_dir: Path | None = Path("/var/log/containers")
    """Where links to containers' logs are, for who collects them; None has none."""
    node_labels: dict[str, str] = field(default_factory=dict)
    maximum_dead_containers_per_container: int = 1
    maximum_dead_containers: int = -1
    minimum_container_ttl: float = 0.0
    local_volumes_kubeconfig: str = ""
    """As whom the driver of local volumes acts; empty: this node has none."""
    flags: Callable[[], Mapping[str, str]] | None = None
    """The flags of the command line by name, for who asks."""

    @property
    def pods_dir(self) -> Path:
        """Where pods have their folders."""
        return self.root_dir / "pods"

    @property
    def pod_logs_dir(self) -> Path:
        """Where pods have their logs."""
        return Path(self.config.pod_logs_dir or "/var/log/pods")
