"""The API server: a store, the cache above it, the chain of filters, a TLS socket.

The chain, outermost first: outcome, request info, authentication, impersonation, in-flight limit, authorization,
dispatch.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.api import scheme
from pybernetes.api.core.validation.capabilities import CAPABILITIES
from pybernetes.api.errors import APIError, RequestEntityTooLarge, TooManyRequests
from pybernetes.api.features import INITIALIZERS_NAME
from pybernetes.api.times import SystemClock
from pybernetes.component.tasks import Tasks
from pybernetes.component.watchdog import LoopWatchdog
from pybernetes.net import inherited_sockets
from pybernetes.net.acceptor import securely
from pybernetes.net.http import Handler, HTTPServer, Request, Response, Timeouts
from pybernetes.net.tls import ServingTLS
from pybernetes.store import open_store
from pybernetes.store.base import Store, StoreError
from pybernetes.store.cache import Cache, Sealed
from pybernetes.trace.sampling import DEFAULT
from pybernetes.trace.why import WHY

from . import authentication as authn
from . import log_level, runtime_config
from .admission import configuration, plugins
from .admission.plugin import Chain
from .aggregation.start import Aggregation, remote_openapi
from .authz.chain import AuthorizerChain
from .authz.metrics import collect as collect_authorization
from .bootstrap import bootstrap, keep
from .bootstrap.identity import Identity
from .bootstrap.rbac import reconcile_policy
from .bootstrap.service import remove_kubernetes_endpoint
from .compaction import compact_regularly
from .discovery import Discovery
from .encryption import encrypted, essential_prefixes, plugins_check
from .extensions.start import Extensions, custom_kinds
from .filters.authentication import Authentication
from .filters.authorization import Authorization
from .filters.impersonation import Impersonation
from .filters.max_in_flight import MaxInFlight
from .filters.outcome import Outcome
from .filters.priority_and_fairness import PriorityAndFairness
from .filters.request_info import RequestInfoFilter
from .filters.tracing import Tracing, staged
from .flowcontrol import dumps
from .flowcontrol.controller import FlowController
from .flowcontrol.turns import Turns
from .handler import Dispatcher
from .health import Health
from .hooks import Hooks, Step
from .memory import trim_regularly
from .metrics import COLLECTORS, Metrics
from .openapi.handler import OpenAPI
from .options import advertised, flag_values
from .paths import Paths
from .pipeline.respond import error_response
from .registry.registry import Registry
from .requestinfo import lasts
from .traces import SPANS, Traces
from .zpages import Flagz

if TYPE_CHECKING:
    from .audit.setup import Auditing

log = logging.getLogger(__name__)

MAX_BODY = 3 * 1024 * 1024  # upstream's limit for a request's body
_DRAIN = 60.0  # seconds for requests in flight after SIGTERM; upstream's --request-timeout
_FOLLOWED = ("/registry/configmaps/", "/registry/secrets/")  # what upstream's server follows and ours can be without
_FAREWELL = 2.0  # seconds for taking this server out of the endpoints, when the store is slow or away


class APIServer:
    """All parts, and the order in which they start and stop."""

    def __init__(self, options: argparse.Namespace, timeouts: Timeouts | None = None) -> None:
        self.options = options
        self.timeouts = timeouts
        self.store = encrypted(self._open_store(), options)
        disabled = runtime_config.apply(options.runtime_config)
        prefixes = sorted({resource.storage_prefix for resource in scheme.resources() if resource.stored})
        self.cache = Cache(self.store, prefixes, essential_prefixes())
        self.registry = Registry(self.cache, SystemClock(), Chain([]), event_ttl=int(options.event_ttl))
        if disabled:
            self.registry.disable(disabled)
        self.registry.initializes = INITIALIZERS_NAME in options.enable_admission_plugins
        self.registry.service_cidrs = options.service_cidrs
        self.registry.node_ports = options.service_node_port_range
        self.registry.kubernetes_node_port = options.kubernetes_service_node_port
        self.registry.component_health = dict(options.component_health)
        self.registry.publishes_endpoints = options.endpoint_reconciler_type != "none"
        self.registry.collects_garbage = options.enable_garbage_collector
        self.registry.passes_redirects = not options.aggregator_reject_forwarding_redirect
        self.registry.kubelet_options = options
        CAPABILITIES.allow_privileged = options.allow_privileged
        CAPABILITIES.enforces_network_policy = options.enforces_network_policy
        self.registry.admission = _admission(self.registry, options)
        self.health = Health()
        self.metrics = Metrics()
        self.metrics.registry = self.registry
        self.metrics.disabled = frozenset(options.disabled_metrics)
        self.port = 0
        self._stopping = asyncio.Event()
        self._ready = False
        self._tasks = Tasks("apiserver")
        self._watchdog = LoopWatchdog()
        self.metrics.watchdog = self._watchdog
        self._authorities = authn.authorities(options)
        self._traces = self._open_traces()
        self.registry.records = self._traces is not None
        self._http = self._chain()
        # A kept head names the store of a custom resource, with its schema, rules and columns.
        self.registry.followers.append(self._http.heads.forget)

    def _open_store(self) -> Store:
        """The store of the flags, not started yet."""
        options = self.options
        return open_store(
            options.etcd_servers,
            ca_file=_text(options.etcd_cafile),
            cert_file=_text(options.etcd_certfile),
            key_file=_text(options.etcd_keyfile),
            writing=lambda: self._limited.writing - self.cache.queued,
        )

    def _open_traces(self) -> Traces | None:
        """The recording of the flags."""
        options = self.options
        recorded = options.trace_dir or options.tracing
        return Traces(options.trace_dir, options.tracing) if recorded else None

    def _address(self) -> str:
        """Where others reach this server."""
        return f"{advertised(self.options)}:{self.port}"

    def _chain(self) -> HTTPServer:
        options = self.options
        authenticators = authn.authenticators(self.registry, options, self._authorities)
        COLLECTORS.extend((authenticators.collect, collect_authorization, self.registry.admission.collect))
        authn.issue_tokens(self.registry, options)
        paths = Paths(self.health, self.metrics, Discovery(self.registry, self._address))
        openapi = OpenAPI(
            lambda: self.registry.generation,
            lambda: custom_kinds(self.registry),
            lambda: remote_openapi(self.registry),
        )
        paths.add_folder("/openapi", openapi, "/openapi/v2", "/openapi/v3", "/openapi/v3/")
        if self._traces is not None:
            paths.add(SPANS, self._traces, listed=False)
        paths.add("/flagz", Flagz(lambda: flag_values(options)))
        for path, debugging in log_level.handlers().items():
            paths.add(path, debugging, listed=False)
        authn.publish_keys(paths, options, self._address)
        self.metrics.paths = lambda: paths.countable
        recording = self._traces is not None
        dispatcher = Dispatcher(self.registry, paths, options.request_timeout)
        handler = staged(dispatcher, "authorized", recording)
        self._authorization = AuthorizerChain(self.registry, options)
        authorization = Authorization(handler, self.registry)
        paths.add(WHY, partial(_why, authorization), listed=False)
        limited = self._limited = self._limit(authorization)
        self.metrics.in_flight = limited
        if self._flows is not None:
            for path, dump in dumps.handlers(self._flows).items():
                paths.add(path, dump, listed=False)
        acting = staged(Impersonation(self._injecting(limited, paths), self.registry), "authenticated", recording)
        self._auditing: Auditing | None = None
        if options.audit_policy_file or options.audit_log_path or options.audit_webhook_config_file:
            from .audit.setup import auditing

            self._auditing = auditing(options)
        if self._auditing is None:
            identified: Handler = Authentication(acting, authenticators, self._turns)
        else:
            from .filters.audit import Audit, FailedAuthenticationAudit

            audited = Authentication(Audit(acting, self._auditing), authenticators, self._turns)
            identified = FailedAuthenticationAudit(audited, self._auditing)
        if self._traces is not None:
            identified = Tracing(identified, self._traces.recorder, DEFAULT)
        outermost: Handler = Outcome(RequestInfoFilter(identified), self.metrics)
        if options.cors_allowed_origins or options.strict_transport_security_directives:
            from .filters.browsers import Browsers

            outermost = Browsers(outermost, options.cors_allowed_origins, options.strict_transport_security_directives)
        longest = options.request_timeout
        timeouts = self.timeouts or Timeouts(request=longest, answer=longest, lasting=options.min_request_timeout)
        return HTTPServer(outermost, _refusal, max_body=MAX_BODY, timeouts=timeouts, lasts=_lasts)

    def _injecting(self, next_: Handler, paths: Paths) -> Handler:
        """Faults on demand in front of the handler, where they are enabled."""
        if not self.options.enable_test_endpoints:
            return next_
        from . import state_endpoint
        from .fault_injection.filter import PATH, FaultInjection

        injection = FaultInjection(next_)
        paths.add(PATH, injection.serve, listed=False)
        state = state_endpoint.StateEndpoint(lambda: self.store, int(self.options.event_ttl))
        paths.add(state_endpoint.PATH, state, listed=False)
        return injection

    def _limit(self, next_: Handler) -> PriorityAndFairness | MaxInFlight:
        reads, writes = self.options.max_requests_inflight, self.options.max_mutating_requests_inflight
        self._flows: FlowController | None = None
        self._turns: Turns | None = None
        if not self.options.enable_priority_and_fairness:
            return MaxInFlight(next_, reads, writes)
        loop = asyncio.get_running_loop()
        self._flows = FlowController(self.registry, reads + writes, loop, self.options.request_timeout / 4)
        self.metrics.flows = self._flows
        self._turns = Turns(loop)
        return PriorityAndFairness(next_, self._flows, self._turns, self.registry)

    async def start(self) -> None:
        """Open the store, read it, listen. Raises StoreError or OSError."""
        self.health.add("ping", _always)
        self.health.add("etcd", partial(self._check_store, self.options.etcd_healthcheck_timeout))
        self.health.add("etcd-readiness", partial(self._check_store, self.options.etcd_readycheck_timeout), ("readyz",))
        plugins = plugins_check(self.store, self.options)
        if plugins is not None:
            self.health.add("kms-providers", plugins, ("healthz", "readyz"))
        self.health.add("informer-sync", self._check_ready, ("readyz",))
        self.health.add("watch-cache", self._check_cache)
        self.health.add("background-tasks", self._check_tasks)
        hooks = Hooks(self.health, flows=self._flows is not None, grace=self.options.livez_grace_period)
        self.health.add("shutdown", self._check_not_stopping, ("readyz",))
        tls = serving_tls(self.options, self._authorities)
        self._watchdog.start()
        await self.store.start()
        await self.cache.start()
        hooks.done(Step.CACHE)
        extensions = Extensions(self.registry)
        await extensions.start()
        self._tasks.start("customresourcedefinitions", extensions.run)
        hooks.done(Step.EXTENSIONS)
        self.port = await self._listen(tls)
        address = advertised(self.options)
        for plugin in self.registry.admission.plugins:
            await plugin.start()
        hooks.done(Step.ADMISSION)
        await self._take(hooks, Step.BOOTSTRAP, partial(bootstrap, self.registry, address, self.port))
        await self._take(hooks, Step.ROLES, partial(reconcile_policy, self.registry))
        aggregation = Aggregation(
            self.registry, self.options.proxy_client_cert_file, self.options.proxy_client_key_file
        )
        await aggregation.start()
        self._tasks.start("apiservices", aggregation.run)
        hooks.done(Step.AGGREGATION)
        if self._flows is not None:
            await self._take(hooks, Step.FLOWS, self._flows.ensure)
            self._tasks.start("flow-control", self._flows.run)
        self._tasks.start("bootstrap", partial(keep, self.registry, address, self.port))
        self._identity = Identity(self.registry, address, self.port)
        self._tasks.start("identity-lease", self._identity.keep)
        hooks.done(Step.UPKEEP)
        self._tasks.start("memory-trimming", partial(trim_regularly, self.cache))
        for batch in self._auditing.batches if self._auditing else ():
            self._tasks.start("audit-batches", batch.run)
        if self._authorization.reloads:
            self._tasks.start("authorization-reload", self._authorization.keep)
        self._ready = True
        if self.options.etcd_compaction_interval:
            interval = self.options.etcd_compaction_interval
            self._tasks.start("compaction", partial(compact_regularly, self.store, interval))
        log.info("serving securely on %s:%d", self.options.bind_address, self.port)

    async def _listen(self, tls: ServingTLS) -> int:
        """Accept connections; the port."""
        listening = partial(asyncio.get_running_loop().create_server, securely(self._http, tls), backlog=1024)
        # None where it is not known: asyncio asks for it only if True
        shared = self.options.permit_port_sharing or None
        self._servers = [await listening(self.options.bind_address, self.options.secure_port, reuse_port=shared)]
        port: int = self._servers[0].sockets[0].getsockname()[1]
        if more := self.options.additional_bind_address:
            self._servers.append(await listening(more, port, reuse_port=shared))
        if made := inherited_sockets.listener():
            self._servers.append(await listening(sock=made))
        return port

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Begin to stop; `run` returns when it is done."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`, then let the requests in flight finish and close the store."""
        await self._stopping.wait()
        log.info("shutting down")
        await asyncio.sleep(self.options.shutdown_delay_duration)
        for server in self._servers:
            server.close()
        await self._tasks.stop()
        self._http.draining = True  # from here on every answer says that it is the last of its connection
        with contextlib.suppress(APIError, StoreError, TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                if not self.store.exclusive and self.registry.publishes_endpoints:
                    await remove_kubernetes_endpoint(self.registry, advertised(self.options), self.port)
                await self._identity.withdraw()
        await self.cache.end_watchers()
        await self._http.drain(_DRAIN)
        if self._auditing:
            await self._auditing.close()
        if self._traces is not None:
            await self._traces.close()
        for plugin in self.registry.admission.plugins:
            await plugin.stop()
        await self.cache.close()
        with contextlib.suppress(StoreError):
            await self.store.close()
        self._watchdog.stop()

    async def _take(self, hooks: Hooks, step: Step, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Take a step of the start. One object that stands in its way does not keep the server from starting: the step
        is tried again in the background, and its health checks fail until it is done. Raises StoreError.
        """

        async def again() -> None:
            await work()
            hooks.done(step)

        try:
            await again()
        except StoreError:
            raise
        except Exception:
            log.exception("start: it is not so yet that %s; trying again", step.value)
            self._tasks.start(f"start-{step.name.lower()}", again)

    async def _check_cache(self) -> None:
        if wrong := self.cache.check():
            raise RuntimeError(wrong)

    async def _check_tasks(self) -> None:
        if wrong := self._tasks.check():
            raise RuntimeError(wrong)

    async def _check_store(self, patience: float) -> None:
        async with asyncio.timeout(patience):
            await self.store.check()

    async def _check_ready(self) -> None:
        if not self._ready:
            raise RuntimeError("not ready")
        for partition in (self.cache.partitions[prefix] for prefix in _FOLLOWED):
            if partition.sealed:
                await self.cache.unseal(partition)
            for key, why in partition.sealed.items():
                raise Sealed(key, why)

    async def _check_not_stopping(self) -> None:
        if self._stopping.is_set():
            raise RuntimeError("process is shutting down")


def _admission(registry: Registry, options: argparse.Namespace) -> Chain:
    configured = configuration.read(options.admission_control_config_file)
    seconds = {
        "notReady": options.default_not_ready_toleration_seconds,
        "unreachable": options.default_unreachable_toleration_seconds,
    }
    configured["DefaultTolerationSeconds"] = seconds  # upstream has flags for these, and no place in the file
    names = plugins.selected(
        options.enable_admission_plugins, options.disable_admission_plugins, options.admission_control
    )
    return plugins.chain(registry, names, configured)


def serving_tls(options: argparse.Namespace, authorities: authn.Authorities) -> ServingTLS:
    """TLS by the flags; client certificates are welcome but not needed. Raises OSError or ValueError."""
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    if not certificate:
        from .selfsigned import self_signed

        certificate, key = self_signed(options.cert_dir, advertised(options))
    return ServingTLS(
        certificate,
        key,
        authorities.all,
        minimum=options.tls_min_version,
        ciphers=options.tls_cipher_suites,
        named=options.tls_sni_cert_key,
        curves=options.tls_curve_preferences,
    )


def _refusal(status: int, message: str) -> Response:
    if status == 413:
        return error_response(RequestEntityTooLarge(f"limit is {MAX_BODY}"))
    if status == 429:
        return error_response(TooManyRequests(message))
    return Response(f"{status} {message}".encode(), status, "text/plain; charset=utf-8")  # what is no HTTP for Go


def _lasts(request: Request) -> bool:
    return request.info is None or lasts(request.info)


async def _why(authorized: Handler, request: Request) -> Response:
    from .why import Why  # only for who asks

    return await Why(authorized)(request)


async def _always() -> None:
    """Being able to answer is the check."""


def _text(path: Path | None) -> str | None:
    return str(path) if path else None
