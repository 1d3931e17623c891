"""The authorizers of a server, in the order of its flags or of its configuration file.

system:masters always comes first. When the configuration file changes, the authorizers are replaced as a whole
(`Registry.authorizers`): a decision that waits for one of the old ones goes on with the old ones.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..reloads import Reloads
from .authorizer import AlwaysAllow, AlwaysDeny, Authorizer, Decision
from .metrics import retire
from .privileged import PrivilegedGroups

if TYPE_CHECKING:
    from ..registry.registry import Registry
    from .configuration import AuthorizationConfiguration, AuthorizerConfiguration

log = logging.getLogger(__name__)
_FOLLOWING = frozenset(("ABAC", "Node", "RBAC"))
_LOOK = 1.0  # seconds between looks at the configuration file


class AuthorizerChain:
    """Makes the authorizers, and makes them anew."""

    def __init__(self, registry: Registry, options: argparse.Namespace) -> None:
        """Raises ValueError or OSError for what cannot be read."""
        self._registry = registry
        self._options = options
        self._made: dict[str, Authorizer] = {}
        self._started: frozenset[str] | None = None
        """The modes at the start, but for webhooks: they stay, and those that follow objects cannot come later."""
        self._trouble = ""
        privileged: Authorizer = PrivilegedGroups()
        self._file: Path | None = options.authorization_config
        self._data = b""
        if self._file is None:
            made = [self._by_mode(mode) for mode in options.authorization_mode]
        else:
            self._data = self._file.read_bytes()
            made = self._configured(self._read(self._data))
            self._started = frozenset(self._made)
            self._reloads = Reloads("authorization", self._data)
        registry.authorizers = (privileged, *made)

    @property
    def reloads(self) -> bool:
        """Whether `keep` has anything to do."""
        return self._file is not None

    async def keep(self) -> None:
        """Follow the configuration file. Runs until cancelled."""
        assert self._file is not None
        while True:
            await asyncio.sleep(_LOOK)
            await self.reload()

    async def reload(self) -> None:
        """Use the configuration file as it is now, if it is a good one."""
        assert self._file is not None
        try:
            data = self._file.read_bytes()
            if data == self._data:
                return
            self._data = data
            fresh = self._configured(self._read(data))
        except (OSError, ValueError) as error:
            if str(error) == self._trouble:  # log a missing file once, not with every check
                return
            self._trouble = str(error)
            log.error("the authorization configuration %s is not used: %s", self._file, error)
            self._reloads.failed()
            return
        self._trouble = ""
        privileged, *old = self._registry.authorizers
        self._registry.authorizers = (privileged, *fresh)
        # Connections of old webhooks are not closed: decisions may wait for them, and idle ones close themselves.
        for each in old:
            if each not in fresh:
                retire(each)
        self._reloads.succeeded(data)
        log.info("the authorization configuration %s was read again", self._file)

    def _read(self, data: bytes) -> AuthorizationConfiguration:
        from . import configuration

        return configuration.read(data, self._started or ())

    def _configured(self, configuration: AuthorizationConfiguration) -> list[Authorizer]:
        made = []
        for each in configuration.authorizers:
            made.append(self._configured_webhook(each) if each.type == "Webhook" else self._by_mode(each.type))
            made[-1].name = each.name
        return made

    def _by_mode(self, mode: str) -> Authorizer:
        """Those that follow objects are made once: they would follow them for ever."""
        found = self._made.get(mode)
        if found is None:
            if self._started is not None and mode in _FOLLOWING:
                raise ValueError(
                    f"authorizer type {mode} is not allowed if it was not enabled at initial server startup"
                )
            found = self._made[mode] = _MAKERS[mode](self._registry, self._options)
        return found

    def _configured_webhook(self, configured: AuthorizerConfiguration) -> Authorizer:
        from ..review_webhook import ReviewWebhook
        from .conditions import MatchConditions
        from .configuration import duration
        from .webhook import Webhook

        settings = configured.webhook
        assert settings is not None
        file = settings.connection_info.kube_config_file
        if file is None:
            raise ValueError(f"authorizer {configured.name}: InClusterConfig is not for an API server")
        conditions = [each.expression for each in settings.match_conditions]
        return Webhook(
            ReviewWebhook(Path(file), timeout=duration(settings.timeout)),
            version=settings.subject_access_review_version,
            authorized_ttl=duration(settings.authorized_ttl) if settings.cache_authorized_requests else 0.0,
            unauthorized_ttl=duration(settings.unauthorized_ttl) if settings.cache_unauthorized_requests else 0.0,
            on_error=Decision.DENY if settings.failure_policy == "Deny" else Decision.NO_OPINION,
            conditions=MatchConditions(conditions) if conditions else None,
        )


def _rbac(registry: Registry, options: argparse.Namespace) -> Authorizer:
    from .rbac import RBAC

    return RBAC(registry)


def _node(registry: Registry, options: argparse.Namespace) -> Authorizer:
    from .node.authorizer import NodeAuthorizer

    return NodeAuthorizer(registry)


def _abac(registry: Registry, options: argparse.Namespace) -> Authorizer:
    from .abac import ABAC

    if options.authorization_policy_file is None:
        raise ValueError("authorization-mode ABAC's authorization policy file not passed")
    return ABAC(options.authorization_policy_file)


def _webhook(registry: Registry, options: argparse.Namespace) -> Authorizer:
    from ..review_webhook import ReviewWebhook
    from .webhook import Webhook

    return Webhook(
        ReviewWebhook(options.authorization_webhook_config_file),
        version=options.authorization_webhook_version,
        authorized_ttl=options.authorization_webhook_cache_authorized_ttl,
        unauthorized_ttl=options.authorization_webhook_cache_unauthorized_ttl,
    )


_MAKERS: dict[str, Callable[[Any, argparse.Namespace], Authorizer]] = {
    "ABAC": _abac,
    "AlwaysAllow": lambda _, __: AlwaysAllow(),
    "AlwaysDeny": lambda _, __: AlwaysDeny(),
    "Node": _node,
    "RBAC": _rbac,
    "Webhook": _webhook,
}
