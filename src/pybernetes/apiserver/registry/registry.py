"""Every resource that is served, found by group, version and name; each is set up when it is first asked for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pybernetes.api import scheme
from pybernetes.api.errors import PathNotFound
from pybernetes.api.resources import Resource
from pybernetes.api.times import Clock
from pybernetes.store.cache import Cache

from .resource_store import ResourceStore
from .strategy import Strategy

if TYPE_CHECKING:
    from ..admission.plugin import Chain
    from ..aggregation.openapi import RemoteOpenAPI
    from ..aggregation.service import RemoteService
    from ..authn.tokens import Tokens
    from ..authz.authorizer import Authorizer
    from ..authz.resolver import RuleResolver
    from ..connect.kubelets import Kubelets
    from ..subresources.token import TokenPolicy
    from .lister import Lister


class Registry:
    """The resources of this server."""

    def __init__(self, cache: Cache, clock: Clock, admission: Chain, *, event_ttl: int = 3600) -> None:
        self.cache = cache
        self.clock = clock
        self.admission = admission
        self.tokens: Tokens | None = None
        self.token_policy: TokenPolicy | None = None
        self.authentication_info: Callable[[], dict[str, str]] | None = None
        """The content of `extension-apiserver-authentication`."""
        self.authorizers: tuple[Authorizer, ...] = ()
        """Replaced as a whole when the configuration changes; who asks several questions takes them once."""
        self.rule_resolver: RuleResolver | None = None
        self.service_cidrs: tuple[str, ...] = ()
        self.node_ports = (30000, 32767)
        self.kubernetes_node_port = 0
        """The node port of the Service `kubernetes`; 0 = it has none."""
        self.component_health: dict[str, int] = {}
        """Ports of this machine at which other components serve /healthz, by name; the rest is at upstream's."""
        self.records = False
        """Whether spans of requests and components are kept (`--trace-dir`)."""
        self.publishes_endpoints = True
        """Whether this server puts itself into the endpoints of that Service."""
        self.collects_garbage = True
        """Whether a garbage collector runs that removes its finalizers."""
        self.passes_redirects = False
        """Whether clients may be sent elsewhere by those who extend this server."""
        self.listers: dict[tuple[str, str, str], Lister[Any]] = {}
        self._event_ttl = event_ttl
        self._stores: dict[tuple[str, str, str], ResourceStore] = {}
        self._built_in = scheme.by_plural()
        self._custom: dict[tuple[str, str, str], Resource] = {}
        self.settled: Callable[[], Awaitable[None]] | None = None
        """Waits until everything is served that is defined."""
        self.initializes = False
        """Whether objects may have to be initialized before they can be seen."""
        self.disabled: frozenset[Resource] = frozenset()
        """Built-in resources that are not served (`runtime_config`)."""
        self.generation = 0
        """Counts the changes of what is served."""
        self.followers: list[Callable[[], None]] = []
        """Called when other resources are served than before."""
        self.aggregated: dict[tuple[str, str], RemoteService] = {}
        """The aggregated servers of groups and versions; mostly none."""
        self.remote_openapi: RemoteOpenAPI | None = None
        self.kubelet_options = Namespace()
        """The flags about kubelets (`connect.flags`)."""
        self.kubelets: Kubelets | None = None
        """How to reach kubelets; made when first needed."""

    def store(self, group: str, version: str, plural: str) -> ResourceStore:
        """The store of a resource that is kept. Raises PathNotFound if nothing is served there."""
        found = self._stores.get((group, version, plural))
        if found is None:
            resource = scheme.resource(group, version, plural)
            if resource is None or not resource.stored:
                raise PathNotFound
            found = self._stores[group, version, plural] = self._make(resource)
        return found

    def served(self, group: str, version: str, plural: str) -> Resource | None:
        """A resource, if it is served."""
        return self._built_in.get((group, version, plural)) or self._custom.get((group, version, plural))

    def disable(self, resources: frozenset[Resource]) -> None:
        """Do not serve some of what is built in; the server itself still has it."""
        self.disabled = resources
        self._built_in = {name: each for name, each in scheme.by_plural().items() if each not in resources}

    def resource(self, group: str, version: str, plural: str) -> Resource:
        """A served resource, kept or not. Raises PathNotFound."""
        resource = self.served(group, version, plural)
        if resource is None:
            raise PathNotFound
        return resource

    async def find(self, group: str, version: str, plural: str) -> Resource:
        """A resource that was not served a moment ago: what other servers have just defined is waited for.

        Raises PathNotFound.
        """
        if self.settled is not None and not self.cache.store.exclusive:
            await self.settled()
        return self.resource(group, version, plural)

    def serve(self, stores: Sequence[ResourceStore], instead_of: Sequence[ResourceStore]) -> None:
        """Serve resources that are not built in, or serve them differently, or no more."""
        for store in instead_of:
            resource = store.resource
            self._stores.pop((resource.group, resource.version, resource.plural), None)
            self.listers.pop((resource.group, resource.version, resource.plural), None)
            self._custom.pop((resource.group, resource.version, resource.plural), None)
        for store in stores:
            store.initializes = self.initializes
            resource = store.resource
            self._stores[resource.group, resource.version, resource.plural] = store
            self._custom[resource.group, resource.version, resource.plural] = resource
        self.generation += 1
        for follower in self.followers:
            follower()

    def resources(self) -> list[Resource]:
        """Everything that is served: what is built in, then what is not, by name."""
        built_in = [each for each in scheme.resources() if each not in self.disabled]
        return [*built_in, *(self._custom[name] for name in sorted(self._custom))]

    def custom_resources(self) -> list[Resource]:
        """The served custom resources, by name."""
        return [self._custom[name] for name in sorted(self._custom)]

    def _make(self, resource: Resource) -> ResourceStore:
        storage = scheme.storage_resource(resource)
        ttl = self._event_ttl if resource.plural == "events" else None
        store = ResourceStore(resource, storage, self.cache, strategy_for(storage), ttl)
        store.initializes = self.initializes
        return store


def strategy_for(resource: Resource) -> Strategy:
    """The strategy of a resource: from `apiserver/strategies/<group>.py`, or the usual one."""
    name = f"pybernetes.apiserver.strategies.{resource.package}"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return Strategy(resource)
    strategy: type[Strategy] = module.STRATEGIES.get(resource.plural, Strategy)
    return strategy(resource)
