"""`KubeSchedulerConfiguration` as it is written in a file.

Durations are Go's text (`15s`). What a plugin takes (`pluginConfig[].args`) is here what the file says; `load` makes it
one of the classes of `args` where the plugin is one of ours, and leaves it alone where it is the user's.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from pybernetes.api.base import Struct
from pybernetes.api.types import Always, Base64, Double, Duration, Int32, Int64, Pointer, RawExtension


class LeaderElectionConfiguration(Struct):
    """The leader election settings."""

    leader_elect: Annotated[bool | None, Pointer] = None
    lease_duration: Duration | None = None
    renew_deadline: Duration | None = None
    retry_period: Duration | None = None
    resource_lock: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None


class ClientConnectionConfiguration(Struct):
    """How the API server is reached."""

    kubeconfig: str | None = None
    accept_content_types: str | None = None
    content_type: str | None = None
    qps: Double | None = None
    burst: Int32 | None = None


class Plugin(Struct):
    """A plugin and, where it scores, how much that counts."""

    name: Annotated[str | None, Always("")] = None
    weight: Annotated[Int32 | None, Pointer] = None


class PluginSet(Struct):
    """The changes to the defaults at one extension point."""

    enabled: list[Plugin] | None = None
    disabled: list[Plugin] | None = None


class Plugins(Struct):
    """Plugins by extension point; `multiPoint` is every point that a plugin has."""

    pre_enqueue: Annotated[PluginSet | None, Always({})] = None
    queue_sort: Annotated[PluginSet | None, Always({})] = None
    pre_filter: Annotated[PluginSet | None, Always({})] = None
    filter: Annotated[PluginSet | None, Always({})] = None
    post_filter: Annotated[PluginSet | None, Always({})] = None
    pre_score: Annotated[PluginSet | None, Always({})] = None
    score: Annotated[PluginSet | None, Always({})] = None
    reserve: Annotated[PluginSet | None, Always({})] = None
    permit: Annotated[PluginSet | None, Always({})] = None
    pre_bind: Annotated[PluginSet | None, Always({})] = None
    bind: Annotated[PluginSet | None, Always({})] = None
    post_bind: Annotated[PluginSet | None, Always({})] = None
    multi_point: Annotated[PluginSet | None, Always({})] = None
    placement_generate: Annotated[PluginSet | None, Always({})] = None
    placement_score: Annotated[PluginSet | None, Always({})] = None


class PluginConfig(Struct):
    """The arguments of one plugin."""

    name: Annotated[str | None, Always("")] = None
    args: RawExtension | None = None


class KubeSchedulerProfile(Struct):
    """One scheduler by name: its plugins and their arguments."""

    scheduler_name: Annotated[str | None, Pointer] = None
    percentage_of_nodes_to_score: Annotated[Int32 | None, Pointer] = None
    plugins: Plugins | None = None
    plugin_config: list[PluginConfig] | None = None


class ExtenderManagedResource(Struct):
    """A resource that an extender looks after."""

    name: Annotated[str | None, Always("")] = None
    ignored_by_scheduler: bool | None = None


class ExtenderTLSConfig(Struct):
    """How an extender is trusted and how it trusts us."""

    insecure: bool | None = None
    server_name: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    ca_file: str | None = None
    cert_data: Base64 | None = None
    key_data: Base64 | None = None
    ca_data: Base64 | None = None


class Extender(Struct):
    """A scheduler's helper over HTTP."""

    url_prefix: Annotated[str | None, Always("")] = None
    filter_verb: str | None = None
    preempt_verb: str | None = None
    prioritize_verb: str | None = None
    weight: Int64 | None = None
    bind_verb: str | None = None
    enable_https: bool | None = msgspec.field(default=None, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration | None = None
    node_cache_capable: bool | None = None
    managed_resources: list[ExtenderManagedResource] | None = None
    ignorable: bool | None = None


class KubeSchedulerConfiguration(Struct):
    """The configuration file of a scheduler."""

    kind: str | None = None
    api_version: str | None = None
    parallelism: Annotated[Int32 | None, Pointer] = None
    leader_election: Annotated[LeaderElectionConfiguration | None, Always({})] = None
    client_connection: Annotated[ClientConnectionConfiguration | None, Always({})] = None
    enable_profiling: Annotated[bool | None, Pointer] = None
    enable_contention_profiling: Annotated[bool | None, Pointer] = None
    percentage_of_nodes_to_score: Annotated[Int32 | None, Pointer] = None
    pod_initial_backoff_seconds: Annotated[Int64 | None, Pointer] = None
    pod_max_backoff_seconds: Annotated[Int64 | None, Pointer] = None
    profiles: list[KubeSchedulerProfile] | None = None
    extenders: list[Extender] | None = None
    delay_cache_until_active: bool | None = None


Args = Any
"""One of the classes of `args`, or for a plugin that is not ours what the file says."""
