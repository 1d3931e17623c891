"""Removes tracking finalizers from pods that are accounted for, and from pods whose Job is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pybernetes.api import errors, labels
from pybernetes.api.batch.v1 import Job
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.client import Client
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, controller_of, key_of, uid_of

from ..common.pod_control import first_failure
from .conditions import is_finished
from .pods import TRACKING_FINALIZER, has_tracking_finalizer

JOB_CONTROLLER = "kubernetes.io/job-controller"
"""The value of `managedBy` for this controller."""


def managed_by_another(job: Job) -> str | None:
    """The controller that looks after the Job, if it is not ours."""
    name = job.spec.managed_by if job.spec else None
    return name if name is not None and name != JOB_CONTROLLER else None


async def remove_finalizer(client: Client, pod: Pod) -> None:
    """Let a pod go; `errors.NotFound` if it is gone."""
    if has_tracking_finalizer(pod):
        key = key_of(pod)
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
        await client.patch(Pod, key.name, patch, key.namespace, type="strategic")


class Releases:
    """Pods whose finalizer was taken off, until the cache has seen it: they must not be counted again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._expected: dict[Key, set[str]] = {}

    def of(self, key: Key) -> frozenset[str]:
        """The uids of a Job's pods that the cache still shows with a finalizer."""
        return frozenset(self._expected.get(key, ()))

    def observed(self, key: Key, uid: str) -> None:
        """The cache has seen a pod without finalizer, or gone."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.discard(uid)
            if not expected:
                del self._expected[key]

    def forget(self, key: Key) -> None:
        """The Job is gone."""
        self._expected.pop(key, None)

    async def release(self, key: Key, pods: Sequence[Pod]) -> tuple[set[str], Exception | None]:
        """Take the finalizers off; the uids of the pods that have none now, and the first failure."""
        released: set[str] = set()
        self._expected.setdefault(key, set()).update(uid_of(pod) for pod in pods)

        async def one(pod: Pod) -> None:
            try:
                await remove_finalizer(self._client, pod)
            except errors.NotFound:
                self.observed(key, uid_of(pod))
            except Exception:
                self.observed(key, uid_of(pod))
                raise
            released.add(uid_of(pod))

        results = await asyncio.gather(*map(one, pods), return_exceptions=True)
        if not self._expected.get(key):
            self._expected.pop(key, None)
        return released, first_failure(results)


class Orphan(NamedTuple):
    """Pods to look at: one by name, or all of a namespace that a selector matches."""

    namespace: str
    name: str = ""
    selector: str = ""


def orphans_of(job: Job) -> Orphan:
    """The pods of a Job that is gone or finished."""
    chosen = labels.from_label_selector(job.spec.selector if job.spec else None)
    return Orphan(key_of(job).namespace, selector=str(chosen))


class OrphanCleaner:
    """Takes finalizers off pods whose Job is gone or finished, which no sync of a Job does."""

    def __init__(self, client: Client, pods: Informer[Pod], owner: Callable[[Pod], Job | None]) -> None:
        self._client, self._pods, self._owner = client, pods, owner

    async def clean(self, orphan: Orphan) -> float | None:
        """Look at the pods meant."""
        failures: list[Exception] = []
        for pod in self._find(orphan):
            if not has_tracking_finalizer(pod) or not self._is_orphan(pod):
                continue
            try:
                await remove_finalizer(self._client, pod)
            except errors.NotFound:
                continue
            except (errors.APIError, OSError, TimeoutError) as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return None

    def _find(self, orphan: Orphan) -> Iterable[Pod]:
        if orphan.name:
            pod = self._pods.named(orphan.name, orphan.namespace)
            return () if pod is None else (pod,)
        chosen = labels.parse(orphan.selector)
        return [
            pod
            for pod in self._pods.in_namespace(orphan.namespace)
            if chosen.matches((pod.metadata.labels if pod.metadata else None) or {})
        ]

    def _is_orphan(self, pod: Pod) -> bool:
        reference = controller_of(pod)
        if reference is None:
            return True
        if reference.kind != "Job" or reference.api_version != "batch/v1":
            return False
        job = self._owner(pod)
        return job is None or (is_finished(job) and managed_by_another(job) is None)
