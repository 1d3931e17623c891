"""The options of the marker `pyb_cluster`, checked before anything is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

MOST_NODES = 5000
RUNTIMES = ("simulated", "embedded", "containerd", "auto")


class OptionError(ValueError):
    """An option that is unknown, or has a value that it cannot have."""


class ClusterOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options, with their defaults."""

    nodes: int = 1
    """How many nodes; 0 = a control plane alone."""
    runtime: str = "simulated"
    """Of the nodes. With `simulated` the cluster is one process, and each test can have its own within milliseconds."""
    store: str = "memory"
    """Of clusters with real nodes: sqlite, etcd or memory. Simulated ones are in memory."""
    api_server_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    features: dict[str, bool] = {}
    """Feature gates of the API server, which refuses what it cannot switch; in an ini file `features=A=true`."""
    scheduler_config: str = ""
    """A file with a KubeSchedulerConfiguration."""
    simulation_rules: str = ""
    """A file with rules for pods on simulated nodes."""
    snapshot: str = ""
    """A golden snapshot (`cluster.save`, `pyb snapshot save`) that the cluster begins with."""
    manifests: tuple[str, ...] = ()
    """Files or folders that are applied before the test begins."""
    autojump: bool = False
    """Time jumps to the next timer whenever the cluster has nothing to do."""


def parse(values: Mapping[str, Any]) -> ClusterOptions:
    """The options that a test or an ini file gives. OptionError names what is wrong."""
    known = {field.name for field in msgspec.structs.fields(ClusterOptions)}
    for name in values:
        if name not in known:
            raise OptionError(f"unknown option {name!r}; there are {', '.join(sorted(known))}")
    lists = {name: _words(value) for name, value in values.items() if name in _LISTS}
    if isinstance(gates := values.get("features"), str):
        lists["features"] = dict(word.partition("=")[::2] for word in gates.split(","))
    try:
        options = msgspec.convert({**values, **lists}, ClusterOptions, strict=False)
    except msgspec.ValidationError as error:
        raise OptionError(str(error).replace("`", "").replace("$.", "")) from None
    if not 0 <= options.nodes <= MOST_NODES:
        raise OptionError(f"nodes: {options.nodes} is not between 0 and {MOST_NODES}")
    if options.runtime not in RUNTIMES:
        raise OptionError(f"runtime: {options.runtime!r} is none of {', '.join(RUNTIMES)}")
    if options.store not in ("memory", "sqlite"):
        raise OptionError(f"store: {options.store!r} is none of memory, sqlite")
    if options.runtime == "simulated" and options.store != "memory":
        raise OptionError(f"store: a cluster of simulated nodes is in memory, not in {options.store}")
    for name in _SIMULATED if options.runtime != "simulated" else ():
        if getattr(options, name):
            raise OptionError(f"{name}: only clusters with runtime='simulated' have it, not {options.runtime!r} ones")
    for name in ("scheduler_config", "simulation_rules", "snapshot"):
        if (file := getattr(options, name)) and not os.path.isfile(file):
            raise OptionError(f"{name}: there is no file {file!r}")
    for gate in options.features:
        if not gate.isidentifier():
            raise OptionError(f"features: {gate!r} is no name of a feature gate")
    for path in options.manifests:
        if not os.path.exists(path):
            raise OptionError(f"manifests: there is no {path!r}")
    return options


_SIMULATED = (
    "api_server_flags",
    "controller_manager_flags",
    "features",
    "scheduler_config",
    "simulation_rules",
    "autojump",
)
"""Options that `pyb up` does not have."""
_LISTS = ("api_server_flags", "controller_manager_flags", "manifests")


def _words(value: Any) -> Any:
    return tuple(value.split()) if isinstance(value, str) else value
