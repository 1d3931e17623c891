"""MutatingAdmissionWebhook: webhooks are asked one after another, each sees what those before it have made.

When one of them changes the object, all mutating plugins run once more, and of the webhooks those that were called
before the change and want that (reinvocationPolicy IfNeeded).
"""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.errors import APIError, BadRequest, InternalError, PatchNotApplicable
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.patch import json_patch
from pybernetes.api.resources import Resource

from .. import documents
from ..plugin import Attributes
from .calling import Dispatcher, Failure, refused
from .hooks import Hook, Invocation

_MUTATION = "mutation.webhook.admission.k8s.io/"
_PATCH = "patch.webhook.admission.k8s.io/"
_FAILED_OPEN = "failed-open.mutation.webhook.admission.k8s.io/"


class Rounds:
    """Which webhooks of a request have been called, and which are to be called again."""

    def __init__(self) -> None:
        self.invoked: set[str] = set()
        self.again: set[str] = set()
        self.output: bytes | None = None

    def require(self) -> None:
        """The object has changed: webhooks that were called before and reinvoke are called again."""
        self.again |= self.invoked
        self.invoked = set()


class MutatingDispatcher(Dispatcher):
    """Calls mutating webhooks."""

    kind = "admit"
    mutating = True

    async def dispatch(self, attributes: Attributes, invocations: tuple[Invocation, ...]) -> None:
        notes = attributes.notes = attributes.notes or {}
        rounds: Rounds = notes.setdefault(self.name, Rounds())
        if attributes.reinvoking and rounds.output != await self._output(attributes):
            rounds.require()
        for hook, target in invocations:
            if attributes.reinvoking and hook.uid not in rounds.again:
                continue
            if not await self.wanted(hook, attributes, target):
                continue
            changed = await self.measured(hook, attributes, self._call(hook, attributes, target))
            if changed:
                rounds.require()
                attributes.reinvoke = True
            if hook.webhook.reinvocation_policy == "IfNeeded":
                rounds.invoked.add(hook.uid)
            if changed is None:
                attributes.annotate(_FAILED_OPEN + _round(attributes, hook), hook.name)
        if not attributes.reinvoking and (rounds.invoked or rounds.again):
            rounds.output = await self._output(attributes)

    async def _output(self, attributes: Attributes) -> bytes:
        found = await documents.document(self.registry, attributes, attributes.new, attributes.requested)
        return msgspec.json.encode(found)

    async def _call(self, hook: Hook, attributes: Attributes, target: Resource) -> bool:
        """Ask, and apply the patch; whether the object is another one now."""
        changed = False
        try:
            answer = await self.ask(hook, attributes, target)
            if not answer.allowed:
                raise refused(hook, answer)
            if answer.patch:
                changed = await self._patch(hook, attributes, target, answer.patch)
        finally:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            attributes.annotate(_MUTATION + _round(attributes, hook), msgspec.json.encode(said).decode())
        return changed

    async def _patch(self, hook: Hook, attributes: Attributes, target: Resource, patch: bytes) -> bool:
        try:
            operations = json_patch.check(msgspec.json.decode(patch))
        except (msgspec.DecodeError, RecursionError, BadRequest) as error:
            raise Failure(hook.name, f"received undecodable patch in webhook response: {error}") from None
        except APIError as error:
            raise InternalError(error.message) from None
        if not operations:
            return False
        if attributes.new is None:
            raise InternalError(
                f"admission webhook {quote(hook.name)} attempted to modify the object,"
                " which is not supported for this operation"
            )
        before = await documents.document(self.registry, attributes, attributes.new, target)
        assert before is not None
        encoded = msgspec.json.encode(before)
        try:
            patched = json_patch.apply(before, operations)
        except PatchNotApplicable as error:
            raise InternalError(error.why.partition(": ")[2] or error.why) from None
        except APIError as error:
            raise InternalError(error.message) from None
        except RecursionError:
            raise InternalError("exceeded max depth") from None
        if not isinstance(patched, dict):
            raise InternalError("the patched object is not a JSON object")
        attributes.new = await documents.restore(self.registry, attributes, patched, target)
        after: Any = await documents.document(self.registry, attributes, attributes.new, target)
        said = {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "patch": operations,
            "patchType": "JSONPatch",
        }
        attributes.annotate(_PATCH + _round(attributes, hook), msgspec.json.encode(said).decode())
        return bool(after != msgspec.json.decode(encoded))


def _round(attributes: Attributes, hook: Hook) -> str:
    return f"round_{int(attributes.reinvoking)}_index_{hook.index}"
