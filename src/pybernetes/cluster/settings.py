"""The settings of a cluster, and the changes that flags of a later `up` make.

A flag that is not given keeps what the cluster has. A flag that is given and differs is applied or refused by its name,
never dropped: `up` prints both lists. Pure: the record and the flags go in, the decision comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from pybernetes.cluster.commands.flags import command
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Record

DEFAULT_PORT = 6443
DEFAULT_STORE = "sqlite"
DEFAULT_NETWORK = "vxlan"
DEFAULT_FAMILY = "ipv4"
DEFAULT_VERBOSITY = 2
"""How much components log: what upstream's documentation calls useful in the steady state."""
USUAL_PORT = -1
"""Ingresses are served at 80 and 443, by users who may not open these at 8080 and 8443."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of `up` that describe the cluster; None is one that was not given."""

    nodes: int | None = None
    runtime: str | None = None
    network: str | None = None
    ip_family: str | None = None
    store: str | None = None
    etcd_endpoints: str | None = None
    port: int | None = None
    simulated_nodes: int | None = None
    simulation_rules: str | None = None
    load_balancer_pool: str | None = None
    ingress_http_port: int | None = None
    ingress_https_port: int | None = None
    verbosity: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a cluster."""

    nodes: int = 1
    runtime: str = "auto"
    network: str = DEFAULT_NETWORK
    """How nodes reach each other's pods (`node.network.KINDS`)."""
    ip_family: str = DEFAULT_FAMILY
    """`ipv4`, or `dual`: pods and Services have both IP versions."""
    store: str = DEFAULT_STORE
    etcd_endpoints: str = ""
    port: int = DEFAULT_PORT
    simulated_nodes: int = 0
    simulation_rules: str = ""
    load_balancer_pool: str = ""
    """Where Services of type LoadBalancer get addresses from; empty: a part of the nodes' own network."""
    ingress_http_port: int = USUAL_PORT
    ingress_https_port: int = USUAL_PORT
    """Where Ingresses are served; 0: not at all."""
    verbosity: int = DEFAULT_VERBOSITY
    """The components' flag `-v`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The settings to start or to go on with; `kept` and `changed` are for the user, in the words of flags."""

    settings: Settings
    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def of(record: Record) -> Settings:
    """The settings in a record."""
    return Settings(
        nodes=record.nodes,
        runtime=record.runtime or "auto",
        network=record.network_kind or DEFAULT_NETWORK,
        ip_family=record.ip_family or DEFAULT_FAMILY,
        store=record.store or DEFAULT_STORE,
        etcd_endpoints=record.etcd_endpoints,
        port=urlsplit(record.server).port or DEFAULT_PORT,
        simulated_nodes=record.simulated_nodes,
        simulation_rules=record.simulation_rules,
        load_balancer_pool=record.load_balancer_pool,
        ingress_http_port=record.ingress_http_port,
        ingress_https_port=record.ingress_https_port,
        verbosity=record.verbosity,
    )


def for_start(record: Record | None, flags: Flags) -> Decision:
    """The settings to start with: a new cluster by the flags alone, a stopped one by its record and the flags."""
    if record is None or not record.server:
        return Decision(_new(flags))
    had = of(record)
    if had.store != "memory" and flags.store not in (None, had.store):
        raise ClusterError(_refused_store(record.name, had.store, flags.store))
    _refuse_family(record.name, had, flags)
    settings = Settings(
        nodes=had.nodes if flags.nodes is None else flags.nodes,
        runtime=had.runtime if flags.runtime is None else flags.runtime,
        network=flags.network or had.network,
        ip_family=flags.ip_family or had.ip_family,
        store=flags.store or had.store,
        etcd_endpoints=_etcd_endpoints(had, flags),
        port=had.port if flags.port is None else flags.port,
        simulated_nodes=had.simulated_nodes if flags.simulated_nodes is None else flags.simulated_nodes,
        simulation_rules=had.simulation_rules if flags.simulation_rules is None else flags.simulation_rules,
        load_balancer_pool=had.load_balancer_pool if flags.load_balancer_pool is None else flags.load_balancer_pool,
        ingress_http_port=had.ingress_http_port if flags.ingress_http_port is None else flags.ingress_http_port,
        ingress_https_port=had.ingress_https_port if flags.ingress_https_port is None else flags.ingress_https_port,
        verbosity=had.verbosity if flags.verbosity is None else flags.verbosity,
    )
    return Decision(settings, _kept(had, flags), _changed(had, settings))


def for_running(record: Record, flags: Flags) -> Decision:
    """The changes to a cluster that runs: the number of its nodes. Anything else that differs is refused."""
    had = of(record)
    if flags.store not in (None, had.store):
        raise ClusterError(_refused_store(record.name, had.store, flags.store))
    _refuse_family(record.name, had, flags)
    pairs = [
        ("--etcd-endpoints", had.etcd_endpoints, flags.etcd_endpoints),
        ("--port", had.port, flags.port or None),
        ("--simulated-nodes", had.simulated_nodes, flags.simulated_nodes),
        ("--simulation-rules", had.simulation_rules, flags.simulation_rules),
        ("--load-balancer-pool", had.load_balancer_pool, flags.load_balancer_pool),
        ("--ingress-http-port", had.ingress_http_port, flags.ingress_http_port),
        ("--ingress-https-port", had.ingress_https_port, flags.ingress_https_port),
        ("-v", had.verbosity, flags.verbosity),
        ("--network", had.network, flags.network if had.nodes else None),
        ("--runtime", had.runtime, None if flags.runtime == "auto" or not had.nodes else flags.runtime),
    ]
    for name, has, wanted in pairs:
        if wanted is not None and wanted != has:
            raise ClusterError(
                f"{name} {wanted}: cluster {record.name!r} runs with {_shown(has)}; "
                f"it can change while the cluster is down"
            )
    nodes = had.nodes if flags.nodes is None else flags.nodes
    changed = (f"--nodes {had.nodes} -> {nodes}",) if nodes != had.nodes else ()
    runtime = flags.runtime or had.runtime if not had.nodes else had.runtime
    network, family = flags.network or had.network, flags.ip_family or had.ip_family
    kept = {name: getattr(had, name) for name in had.__slots__}
    settings = Settings(**{**kept, "nodes": nodes, "runtime": runtime, "network": network, "ip_family": family})
    return Decision(settings, (), changed)


def _new(flags: Flags) -> Settings:
    simulated = flags.simulated_nodes or 0
    return Settings(
        nodes=(0 if simulated else 1) if flags.nodes is None else flags.nodes,
        runtime=flags.runtime or "auto",
        network=flags.network or DEFAULT_NETWORK,
        ip_family=flags.ip_family or DEFAULT_FAMILY,
        store=flags.store or DEFAULT_STORE,
        etcd_endpoints=flags.etcd_endpoints or "",
        port=DEFAULT_PORT if flags.port is None else flags.port,
        simulated_nodes=simulated,
        simulation_rules=flags.simulation_rules or "",
        load_balancer_pool=flags.load_balancer_pool or "",
        ingress_http_port=USUAL_PORT if flags.ingress_http_port is None else flags.ingress_http_port,
        ingress_https_port=USUAL_PORT if flags.ingress_https_port is None else flags.ingress_https_port,
        verbosity=DEFAULT_VERBOSITY if flags.verbosity is None else flags.verbosity,
    )


def _etcd_endpoints(had: Settings, flags: Flags) -> str:
    if (flags.store or had.store) != "etcd":
        return ""
    return flags.etcd_endpoints or had.etcd_endpoints


def _refused_store(name: str, has: str, wanted: str | None) -> str:
    return (
        f"--store {wanted}: cluster {name!r} has its objects in {has}; "
        f"{command('down --purge', name)} removes them, another --name makes another cluster"
    )


def _refuse_family(name: str, had: Settings, flags: Flags) -> None:
    """Nodes keep the pod ranges that they were given."""
    if had.nodes and flags.ip_family not in (None, had.ip_family):
        raise ClusterError(
            f"--ip-family {flags.ip_family}: the nodes of cluster {name!r} have pod ranges of {had.ip_family}; "
            f"{command('down --purge', name)} removes them, another --name makes another cluster"
        )


def _kept(had: Settings, flags: Flags) -> tuple[str, ...]:
    rows = [
        ("--nodes", had.nodes, flags.nodes, True),
        ("--runtime", had.runtime, flags.runtime, had.nodes > 0),
        ("--network", had.network, flags.network, had.nodes > 0 and had.network != DEFAULT_NETWORK),
        ("--ip-family", had.ip_family, flags.ip_family, had.nodes > 0 and had.ip_family != DEFAULT_FAMILY),
        ("--store", had.store, flags.store, True),
        ("--etcd-endpoints", had.etcd_endpoints, flags.etcd_endpoints, had.store == "etcd"),
        ("--port", had.port, flags.port, True),
        ("--simulated-nodes", had.simulated_nodes, flags.simulated_nodes, had.simulated_nodes > 0),
        ("--simulation-rules", had.simulation_rules, flags.simulation_rules, bool(had.simulation_rules)),
        ("--load-balancer-pool", had.load_balancer_pool, flags.load_balancer_pool, bool(had.load_balancer_pool)),
        ("--ingress-http-port", had.ingress_http_port, flags.ingress_http_port, had.ingress_http_port != USUAL_PORT),
        (
            "--ingress-https-port",
            had.ingress_https_port,
            flags.ingress_https_port,
            had.ingress_https_port != USUAL_PORT,
        ),
        ("-v", had.verbosity, flags.verbosity, had.verbosity != DEFAULT_VERBOSITY),
    ]
    return tuple(f"{name} {value}" for name, value, given, matters in rows if matters and given is None)


def _changed(had: Settings, now: Settings) -> tuple[str, ...]:
    rows = [
        ("--nodes", had.nodes, now.nodes),
        ("--network", had.network, now.network),
        ("--ip-family", had.ip_family, now.ip_family),
        ("--store", had.store, now.store),
        ("--etcd-endpoints", had.etcd_endpoints, now.etcd_endpoints),
        ("--port", had.port, now.port or had.port),
        ("--simulated-nodes", had.simulated_nodes, now.simulated_nodes),
        ("--simulation-rules", had.simulation_rules, now.simulation_rules),
        ("--load-balancer-pool", had.load_balancer_pool, now.load_balancer_pool),
        ("--ingress-http-port", had.ingress_http_port, now.ingress_http_port),
        ("--ingress-https-port", had.ingress_https_port, now.ingress_https_port),
        ("-v", had.verbosity, now.verbosity),
    ]
    if had.nodes and now.nodes and "auto" not in (had.runtime, now.runtime):
        rows.append(("--runtime", had.runtime, now.runtime))
    return tuple(f"{name} {_shown(old)} -> {_shown(new)}" for name, old, new in rows if old != new)


def _shown(value: object) -> str:
    if value == USUAL_PORT:
        return "the usual one"
    return str(value) if value != "" else "none"
