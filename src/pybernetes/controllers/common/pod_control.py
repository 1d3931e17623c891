"""Makes and deletes pods for a controller, and tells its users so by events on the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.client import Client
from pybernetes.client.events import NORMAL, WARNING, EventRecorder

from .meta import meta, name_of

NAMESPACE_TERMINATING = "NamespaceTerminating"


def is_namespace_terminating(error: BaseException) -> bool:
    """Whether something could not be made because its namespace is going away; trying again is no use."""
    return isinstance(error, errors.APIError) and any(
        cause.get("reason") == NAMESPACE_TERMINATING for cause in error.causes
    )


class PodControl:
    """Pods on behalf of an owner."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    async def create(self, pod: Pod, owner: Kind) -> Pod:
        """Make a pod."""
        try:
            made = await self._client.create(pod)
        except (errors.APIError, OSError, TimeoutError) as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {name_of(made)}")
        return made

    async def delete(self, pod: Pod, owner: Kind) -> None:
        """Delete a pod; `errors.NotFound` if it is gone."""
        try:
            await self._client.delete(Pod, name_of(pod), meta(pod).namespace or "")
        except errors.NotFound:
            raise
        except (errors.APIError, OSError, TimeoutError) as error:
            self._recorder.event(owner, WARNING, "FailedDelete", f"Error deleting: {error}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")


async def slow_start(
    count: int, call: Callable[[int], Awaitable[None]], largest: int | None = None
) -> tuple[int, Exception | None]:
    """Call 1, 2, 4, ... times at once until it was called for every number below `count` or one call failed.

    How many calls succeeded, and the first failure. What fails for all (a quota) costs one request, not hundreds.
    """
    done, successes, batch = 0, 0, 1
    while done < count:
        size = min(batch, count - done, largest or count)
        results = await asyncio.gather(*(call(number) for number in range(done, done + size)), return_exceptions=True)
        failure = first_failure(results)
        successes += sum(not isinstance(result, BaseException) for result in results)
        if failure is not None:
            return successes, failure
        done += size
        batch *= 2
    return successes, None


def first_failure(results: Iterable[object]) -> Exception | None:
    """The first exception among results; one that is not an ordinary failure is raised."""
    for result in results:
        if isinstance(result, Exception):
            return result
        if isinstance(result, BaseException):
            raise result
    return None
