"""Binds a pod to the node that was chosen for it: wait for permits, prepare, tell the API server.

Many of these run at a time, beside the scheduling cycle. Whatever goes wrong, the outcome is asked from the API server
before anything is done about it: it binds a pod once, so a request whose answer was lost, or a second scheduler, cannot
make two bindings.
"""

from __future__ import annotations

import logging

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod
from pybernetes.client.keys import key_of
from pybernetes.component import klog

from .framework.extender import ExtenderError
from .framework.podinfo import PodInfo
from .framework.runtime import Framework
from .framework.state import CycleState
from .framework.status import Code, Status
from .framework.waiting import WaitingPod

log = logging.getLogger(__name__)

BOUND_ELSEWHERE = "bound elsewhere"
GONE = "gone"


class Outcome(Exception):
    """The pod needs no scheduling any more: another scheduler has bound it, or it is gone."""


async def wait_on_permit(waiting: WaitingPod) -> Status | None:
    """The final status of the Permit plugins."""
    status = await waiting.wait()
    if status is None or status.rejected:
        return status
    return Status(Code.ERROR, f"waiting on permit for pod: {status.message}", plugin=status.plugin)


async def bind(framework: Framework, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
    """Bind by an extender or a plugin. None when the pod is bound to this node; raises `Outcome`."""
    if framework.snapshot.node(node_name) is None:
        return Status(Code.ERROR, f'node "{node_name}" not found')
    klog.info(log, 3, "Attempting to bind pod to node", pod=key_of(pod.pod), node=node_name)
    status = await _bind(framework, state, pod, node_name)
    if status is None:
        klog.info(log, 2, "Successfully bound pod to node", pod=key_of(pod.pod), node=node_name)
    if status is None or not isinstance(status.error, (errors.APIError, OSError, TimeoutError)):
        return status
    if isinstance(status.error, errors.APIError) and not isinstance(
        status.error,
        (
            errors.Conflict,
            errors.NotFound,
            errors.InternalError,
            errors.Timeout,
            errors.ServerTimeout,
            errors.ServiceUnavailable,
        ),
    ):
        return status
    return await _what_happened(framework, pod, node_name, status)


async def _bind(framework: Framework, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
    for extender in framework.extenders:
        if not extender.is_binder or not extender.is_interested(pod):
            continue
        try:
            await extender.bind(pod.pod, node_name)
        except ExtenderError as error:
            if extender.ignorable:
                log.info("extender %s is skipped: %s", extender.name, error)
                continue
            return Status.of_error(error)
        return None
    return await framework.run_binds(state, pod, node_name)


async def _what_happened(framework: Framework, pod: PodInfo, node_name: str, status: Status) -> Status | None:
    try:
        live = await framework.client.get(Pod, pod.name, pod.namespace)
    except errors.NotFound as error:
        raise Outcome(GONE) from error
    except (errors.APIError, OSError, TimeoutError):
        return status  # unknown: the pod is tried again, and if it is bound by then, it is refused and we look again
    assert live.metadata is not None
    assert live.spec is not None
    if live.metadata.uid != pod.uid:
        raise Outcome(GONE)
    if live.spec.node_name == node_name and not isinstance(status.error, errors.Conflict):
        return None  # by this very request, whose answer was lost
    if live.spec.node_name:  # another scheduler's binding was first, and its events tell of it
        raise Outcome(BOUND_ELSEWHERE)
    return status
