"""The kubelet's HTTPS server with everything that it serves, and the plain health port beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.keys import uid_of
from pybernetes.component import state_files
from pybernetes.net.client_certificates import Trust
from pybernetes.net.tls import ServingTLS

from .config.load import seconds
from .server.authn import Authenticator
from .server.authz import AlwaysAllow, Authorizer, WebhookAuthorizer
from .server.server import KubeletServer
from .server.statistics import add_statistics
from .server.zpages import add_zpages

if TYPE_CHECKING:
    from .kubelet import Kubelet


class KubeletSource:
    """The kubelet, as its server sees it (`server.source.Source`)."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def pods(self) -> Iterable[Pod]:
        """All pods of this node."""
        return self._kubelet.pods.all()

    def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name."""
        return self._kubelet.pods.named(namespace, name)

    def status(self, pod: Pod) -> PodStatus:
        """The newest status that is known."""
        return self._kubelet.statuses.get(uid_of(pod)) or pod.status or PodStatus()

    def sync_loop_problem(self) -> str:
        """Why the loop over pods is not well."""
        return self._kubelet.pleg.problem()

    def failed_tasks(self) -> Mapping[str, str]:
        """Long-lived tasks that keep failing, and why."""
        return self._kubelet.tasks.failed

    def configuration(self) -> dict[str, Any]:
        """The KubeletConfiguration in force."""
        result: dict[str, Any] = msgspec.to_builtins(self._kubelet.settings.config)
        return result


async def serve(kubelet: Kubelet) -> KubeletServer | None:
    """Start the server, if it is enabled."""
    config = kubelet.settings.config
    if not config.enable_server:
        return None
    authentication, authorization = config.authentication, config.authorization
    assert authentication is not None
    assert authorization is not None
    ca = authentication.x509.client_ca_file if authentication.x509 else None
    trust = Trust(Path(ca)) if ca else None
    webhook = authentication.webhook
    client = kubelet.client.for_component("server")
    authn = Authenticator(
        client if webhook and webhook.enabled else None,
        trust,
        anonymous=bool(authentication.anonymous and authentication.anonymous.enabled),
        ttl=seconds(webhook.cache_ttl if webhook else None),
    )
    authz: Authorizer = AlwaysAllow()
    if authorization.mode == "Webhook":
        review = authorization.webhook
        authz = WebhookAuthorizer(
            client,
            kubelet.settings.node_name,
            allowed_ttl=seconds(review.cache_authorized_ttl if review else None),
            denied_ttl=seconds(review.cache_unauthorized_ttl if review else None),
        )
    metrics = kubelet.manager_metrics
    authn.asked, authn.looked_up = partial(metrics.delegated, "authn"), metrics.looked_up
    if isinstance(authz, WebhookAuthorizer):
        authz.asked = partial(metrics.delegated, "authz")
    server = KubeletServer(
        KubeletSource(kubelet),
        kubelet.runtime,
        authn=authn,
        authz=authz,
        system_logs="/var/log" if config.enable_system_log_handler else "",
        log_query=bool(config.enable_system_log_query),
        checkpoints=kubelet.settings.root_dir / "checkpoints",
        debugging=bool(config.enable_debugging_handlers),
        metrics=kubelet.metrics.registry,
    )
    add_statistics(server, kubelet.stats, kubelet.metrics.registry, kubelet.probes.metrics)
    if config.enable_debugging_handlers:
        add_zpages(server, kubelet.settings.flags)
    certificate, key = serving_certificate(kubelet)
    more: dict[str, Any] = {}
    if config.tls_min_version:
        more["minimum"] = config.tls_min_version
    if config.tls_cipher_suites:
        more["ciphers"] = config.tls_cipher_suites
    tls = ServingTLS(certificate, key, [trust] if trust else [], **more)
    await server.start(config.address or "0.0.0.0", config.port or 10250, tls)
    return server


async def serve_health(kubelet: Kubelet) -> KubeletServer | None:
    """The plain port for the machine's own supervisor: health, and nothing confidential."""
    config = kubelet.settings.config
    if not config.healthz_port:
        return None
    server = KubeletServer(KubeletSource(kubelet), kubelet.runtime, authn=None, authz=None, health_only=True)
    await server.start(config.healthz_bind_address or "127.0.0.1", config.healthz_port, None)
    return server


async def serve_read_only(kubelet: Kubelet) -> KubeletServer | None:
    """The legacy read-only port for pods and statistics, without authentication; off by default."""
    config = kubelet.settings.config
    if not config.read_only_port:
        return None
    server = KubeletServer(KubeletSource(kubelet), kubelet.runtime, authn=None, authz=None)
    add_statistics(server, kubelet.stats, kubelet.metrics.registry, kubelet.probes.metrics)
    await server.start(config.address or "0.0.0.0", config.read_only_port, None)
    return server


def serving_certificate(kubelet: Kubelet) -> tuple[Path, Path]:
    """The files of the server's certificate and key; self-signed ones are made if none are given."""
    config, settings = kubelet.settings.config, kubelet.settings
    if config.tls_cert_file and config.tls_private_key_file:
        return Path(config.tls_cert_file), Path(config.tls_private_key_file)
    certificate, key = settings.cert_dir / "kubelet.crt", settings.cert_dir / "kubelet.key"
    if config.server_tls_bootstrap:
        certificate = key = settings.cert_dir / "kubelet-server-current.pem"
    from .node.certificates import load_pair

    if load_pair(certificate, key) is None:
        from pybernetes import pki

        authority = pki.create_authority(f"{settings.hostname}-ca")
        identity = pki.issue_server(authority, settings.hostname, [settings.hostname, *settings.node_ips])
        chain = identity.certificate_pem + authority.certificate_pem
        state_files.write(key, identity.key_pem + (chain if certificate == key else b""))
        if certificate != key:
            state_files.write(certificate, chain)
    return certificate, key
