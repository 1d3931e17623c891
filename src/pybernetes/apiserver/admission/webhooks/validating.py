"""ValidatingAdmissionWebhook: all webhooks that are concerned are asked at once; one refusal is enough."""

from __future__ import annotations

import asyncio

from pybernetes.api.resources import Resource

from ..plugin import Attributes
from .calling import Dispatcher, refused
from .hooks import Hook, Invocation

_FAILED_OPEN = "failed-open.validation.webhook.admission.k8s.io/"


class ValidatingDispatcher(Dispatcher):
    """Calls validating webhooks."""

    kind = "validating"

    async def dispatch(self, attributes: Attributes, invocations: tuple[Invocation, ...]) -> None:
        calls = [
            self._judge(hook, attributes, target)
            for hook, target in invocations
            if await self.wanted(hook, attributes, target)
        ]
        if len(calls) == 1:
            await calls[0]
        elif calls:
            results = await asyncio.gather(*calls, return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result

    async def _judge(self, hook: Hook, attributes: Attributes, target: Resource) -> None:
        said = await self.measured(hook, attributes, self._call(hook, attributes, target))
        if said is None:
            attributes.annotate(f"{_FAILED_OPEN}round_0_index_{hook.index}", hook.name)

    async def _call(self, hook: Hook, attributes: Attributes, target: Resource) -> bool:
        answer = await self.ask(hook, attributes, target)
        if not answer.allowed:
            raise refused(hook, answer)
        return True
