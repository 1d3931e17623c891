"""Shared by both plugins: whether to call a webhook, the call itself, and its failure policy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybernetes.api.errors import APIError, BadRequest, Forbidden, InternalError
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.resources import Resource
from pybernetes.trace import recorder

from ...webhooks.client import CallFailed, WebhookClient
from ...webhooks.identities import Identities
from .. import documents
from ..matching import namespaces_of
from ..plugin import Attributes
from ..requests import admission_request
from .hooks import Hook, Invocation
from .metrics import METRICS
from .review import Answer, Undecodable, Unusable, question, read, refusal, review_version

if TYPE_CHECKING:
    from ...registry.registry import Registry

log = logging.getLogger(__name__)


class Failure(Exception):
    """A webhook could not be asked; what that means for the request is for its failurePolicy to say."""

    def __init__(self, name: str, why: object, code: int = 503) -> None:
        super().__init__(f"failed calling webhook {quote(name)}: {why}")
        self.code = code


class Dispatcher:
    """Calls webhooks. `kind` is the word for metrics."""

    kind = ""
    mutating = False

    def __init__(self, registry: Registry, configuration: Any, name: str) -> None:
        """Raises ValueError for an invalid configuration."""
        self.registry = registry
        self.name = name
        self.client = WebhookClient(registry, _identities(configuration, name))

    async def dispatch(self, attributes: Attributes, invocations: tuple[Invocation, ...]) -> None:
        """Make the calls that a request needs."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def wanted(self, hook: Hook, attributes: Attributes, target: Resource) -> bool:
        """Whether selectors and match conditions of a webhook are about this very request."""
        if not await hook.selectors.match(attributes, namespaces_of(self.registry)):
            return False
        conditions = hook.conditions
        if conditions is None:
            return True
        from ..expressions import Activation

        bindings = {
            "object": await documents.document(self.registry, attributes, attributes.new, target),
            "oldObject": await documents.document(self.registry, attributes, attributes.old, target),
            "namespaceObject": None,
        }
        started = time.perf_counter()
        holds, error = await conditions.match(Activation(self.registry, attributes, bindings, target))
        METRICS.conditions(self.kind, attributes.operation, hook.name, time.perf_counter() - started, holds, error)
        if error:
            log.warning("match conditions of webhook %s: %s", hook.name, error)
            resource = attributes.requested
            raise Forbidden(resource.group, resource.plural, attributes.name, error)
        return bool(holds)

    async def ask(self, hook: Hook, attributes: Attributes, target: Resource) -> Answer:
        """Ask a webhook. Raises Failure, or the refusal of a dry run that it does not support."""
        webhook = hook.webhook
        if attributes.dry_run and webhook.side_effects not in ("None", "NoneOnDryRun"):
            raise BadRequest(f"admission webhook {quote(hook.name)} does not support dry run")
        from pybernetes.api.randomness import new_uid

        uid = new_uid()
        try:
            version = review_version(webhook.admission_review_versions)
        except Unusable as error:
            raise Failure(hook.name, f"could not create admission objects: {error}", 400) from None
        new = await documents.document(self.registry, attributes, attributes.new, target)
        old = await documents.document(self.registry, attributes, attributes.old, target)
        body = question(uid, version, admission_request(attributes, target), new, old)
        try:
            with recorder.child(f"webhook {hook.name}"):
                raw = await self.client.post(webhook.client_config, body, hook.within)
        except CallFailed as error:
            raise Failure(hook.name, f"failed to call webhook: {error.message}", error.code) from None
        try:
            answer = read(raw, uid, version, self.mutating)
        except Undecodable as error:
            raise Failure(hook.name, f"failed to call webhook: {error}") from None
        except Unusable as error:
            raise Failure(hook.name, f"received invalid webhook response: {error}") from None
        for key, value in answer.annotations.items():
            attributes.annotate(f"{hook.name}/{key}", value)
        attributes.warnings.extend(answer.warnings)
        return answer

    async def measured(self, hook: Hook, attributes: Attributes, call: Awaitable[Any]) -> Any:
        """Await a call and count how it went; a failure that the webhook's policy ignores is None."""
        started = time.perf_counter()
        operation = attributes.operation
        try:
            result = await call
        except Failure as failure:
            self._count(hook, attributes, started, not hook.ignores, failure.code)
            if hook.ignores:
                log.warning("%s; the request goes on", failure)
                METRICS.failed_open(hook.name, self.kind)
                return None
            METRICS.rejected(hook.name, self.kind, operation, "calling_webhook_error", failure.code)
            log.warning("%s; the request is refused", failure)
            raise InternalError(failure) from None
        except asyncio.CancelledError:
            raise
        except InternalError:
            self._count(hook, attributes, started, True, 0)
            METRICS.rejected(hook.name, self.kind, operation, "apiserver_internal_error", 0)
            raise
        except APIError as refused:
            self._count(hook, attributes, started, True, refused.code)
            METRICS.rejected(hook.name, self.kind, operation, "no_error", refused.code)
            raise
        self._count(hook, attributes, started, False, 200)
        return result

    def _count(self, hook: Hook, attributes: Attributes, started: float, rejected: bool, code: int) -> None:
        METRICS.called(hook.name, self.kind, attributes.operation, rejected, code, time.perf_counter() - started)


def refused(hook: Hook, answer: Answer) -> APIError:
    """The refusal that a webhook gave."""
    return refusal(hook.name, answer.status)


def _identities(configuration: Any, plugin: str) -> Identities | None:
    if configuration is None:
        return None
    from ..configuration import check_kind

    versions = (
        "apiserver.config.k8s.io/v1",
        "apiserver.config.k8s.io/v1alpha1",
        "apiserver.k8s.io/v1alpha1",
    )
    kind = "WebhookAdmissionConfiguration" if configuration.get("kind") != "WebhookAdmission" else "WebhookAdmission"
    found = check_kind(configuration, kind, versions, plugin)
    if found.get("staticManifestsDir"):
        raise ValueError(f"{plugin}: staticManifestsDir needs the feature ManifestBasedAdmissionControlConfig")
    file = found.get("kubeConfigFile")
    if not file:
        return None
    try:
        return Identities.read(Path(file))
    except OSError as error:
        raise ValueError(f"{plugin}: {file}: {error.strerror}") from None
