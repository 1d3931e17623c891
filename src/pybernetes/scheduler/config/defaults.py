"""Sets the defaults of a configuration: upstream's values, applied before validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .plugins import default_plugins, merge, names
from .v1 import GROUP_VERSION
from .v1.args import (
    ARGS,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    VolumeBindingArgs,
)
from .v1.types import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
)

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"


def set_defaults(config: KubeSchedulerConfiguration) -> None:
    """Fill in the configuration, its profiles and the arguments of their plugins, in place."""
    _absent(
        config,
        parallelism=16,
        percentage_of_nodes_to_score=0,
        pod_initial_backoff_seconds=1,
        pod_max_backoff_seconds=10,
        enable_profiling=True,
    )
    if config.enable_profiling:
        _absent(config, enable_contention_profiling=True)
    config.profiles = config.profiles or [KubeSchedulerProfile()]
    if len(config.profiles) == 1:  # of several, each needs a name of its own, and validation says so
        _absent(config.profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)
    for profile in config.profiles:
        _profile(profile)
    config.leader_election = config.leader_election or LeaderElectionConfiguration()
    _absent(
        config.leader_election,
        leader_elect=True,
        resource_lock="leases",
        resource_namespace="kube-system",
        resource_name="kube-scheduler",
    )
    for name, seconds in (("lease_duration", "15s"), ("renew_deadline", "10s"), ("retry_period", "2s")):
        if getattr(config.leader_election, name) in (None, "0s"):
            setattr(config.leader_election, name, seconds)
    config.client_connection = config.client_connection or ClientConnectionConfiguration()
    _absent(config.client_connection, content_type="application/vnd.kubernetes.protobuf", qps=50.0, burst=100)


def _profile(profile: KubeSchedulerProfile) -> None:
    profile.plugins = merge(default_plugins(), profile.plugins)
    configs = profile.plugin_config = profile.plugin_config or []
    for each in configs:
        if each.name in ARGS:
            set_args_defaults(each.args)
    present = {each.name for each in configs}
    for name in names(profile.plugins):
        if name in ARGS and name not in present:
            configs.append(PluginConfig(name=name, args=default_args(name)))


def default_args(name: str) -> Any:
    """The default arguments of a plugin of ours; None for a plugin without arguments."""
    if name not in ARGS:
        return None
    args = ARGS[name](kind=f"{name}Args", api_version=GROUP_VERSION)
    set_args_defaults(args)
    return args


def set_args_defaults(args: Any) -> None:
    """Fill in the arguments of one of our plugins, in place."""
    fill = _ARGS.get(type(args))
    if fill is not None:
        fill(args)


def _resources(found: list[ResourceSpec] | None) -> list[ResourceSpec]:
    found = found or [ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1)]
    for each in found:
        each.weight = each.weight or 1
    return found


def _balanced(args: NodeResourcesBalancedAllocationArgs) -> None:
    args.resources = _resources(args.resources)


def _fit(args: NodeResourcesFitArgs) -> None:
    strategy = args.scoring_strategy = args.scoring_strategy or ScoringStrategy(type="LeastAllocated")
    strategy.resources = _resources(strategy.resources)


def _absent(obj: Any, **values: Any) -> None:
    for name, value in values.items():
        if getattr(obj, name) is None:
            setattr(obj, name, value)


_ARGS: dict[type, Callable[[Any], None]] = {
    DefaultPreemptionArgs: lambda args: _absent(
        args, min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100
    ),
    DynamicResourcesArgs: lambda args: _absent(args, filter_timeout="10s", binding_timeout="10m0s"),
    InterPodAffinityArgs: lambda args: _absent(args, hard_pod_affinity_weight=1),
    NodeResourcesBalancedAllocationArgs: _balanced,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: lambda args: _absent(args, defaulting_type="System"),
    VolumeBindingArgs: lambda args: _absent(args, bind_timeout_seconds=600),
}
