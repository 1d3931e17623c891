"""Sets the number of replicas by metrics.

Woken by: the clock, every 15 seconds for each autoscaler; changes of an autoscaler wait for that too. Writes: the scale
of its target, its own status.
"""

from __future__ import annotations

import msgspec

from pybernetes.api import errors, labels
from pybernetes.api.autoscaling.v1 import Scale
from pybernetes.api.autoscaling.v2 import (
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    MetricStatus,
)
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.resources import Resource
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key, key_of
from pybernetes.client.retry import retry_on_conflict

from ..base import Controller
from ..common.meta import labels_of
from ..common.scales import NoMatch, Scales
from . import behavior
from .behavior import History
from .evaluation import Answer, Evaluator, MetricFailed, Target, tolerances_of
from .metrics import MetricsClient
from .replicas import Initialization
from .selectors import TargetSelectors

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"

_BELOW = "Current number of replicas below Spec.MinReplicas"
_ABOVE = "Current number of replicas above Spec.MaxReplicas"


class Unable(Exception):
    """Nothing can be decided now; the conditions say why."""


class _Look:
    """One look at an autoscaler: its new status as it comes about."""

    def __init__(self, autoscaler: HorizontalPodAutoscaler, now: float) -> None:
        self.autoscaler = autoscaler
        self.spec = autoscaler.spec or HorizontalPodAutoscalerSpec()
        self.now = now
        before = autoscaler.status or HorizontalPodAutoscalerStatus()
        self.status = HorizontalPodAutoscalerStatus(
            current_replicas=before.current_replicas,
            desired_replicas=before.desired_replicas or 0,
            last_scale_time=before.last_scale_time,
            current_metrics=before.current_metrics,
            conditions=list(before.conditions or ()),
        )
        self.key = key_of(autoscaler)

    def say(self, kind: str, status: bool, reason: str, message: str) -> None:
        """Put a condition; its time changes when it turns."""
        text = "True" if status else "False"
        conditions = self.status.conditions = self.status.conditions or []
        old = next((each for each in conditions if each.type == kind), None)
        turned = old is None or old.status != text
        new = HorizontalPodAutoscalerCondition(
            type=kind,
            status=text,
            last_transition_time=rfc3339(self.now) if old is None or turned else old.last_transition_time,
            reason=reason,
            message=message,
        )
        if old is None:
            conditions.append(new)
        else:
            conditions[conditions.index(old)] = new


class HorizontalPodAutoscalerController(Controller[HorizontalPodAutoscaler]):
    """Keeps targets at the size that their metrics ask for."""

    name = "horizontal-pod-autoscaler-controller"
    kind = HorizontalPodAutoscaler

    def setup(self) -> None:
        """Know pods; ask for metrics."""
        options = self.options
        self.workers = options.concurrent_horizontal_pod_autoscaler_syncs
        self.recorder = self.context.events.recorder("horizontal-pod-autoscaler")
        self.period = options.horizontal_pod_autoscaler_sync_period
        self.pods: Informer[Pod] = self.informer(Pod)
        self.scales = Scales(self.client)
        self.evaluator = Evaluator(
            MetricsClient(self.client, self.scales),
            Initialization(
                options.horizontal_pod_autoscaler_cpu_initialization_period,
                options.horizontal_pod_autoscaler_initial_readiness_delay,
            ),
            self.clock.now,
        )
        self._histories: dict[Key, History] = {}
        self._selectors = TargetSelectors()
        self.own.add_handler(
            lambda each: self.enqueue(each, self.period), lambda _, each: self.enqueue(each, self.period), self._gone
        )

    def queue_name(self) -> str:
        """Upstream's name of the queue."""
        return "horizontalpodautoscaler"

    def concerns(self, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> bool:
        """Never at once: metrics need time to show what a change has done."""
        return False

    def _gone(self, autoscaler: HorizontalPodAutoscaler) -> None:
        self._histories.pop(key_of(autoscaler), None)
        self._selectors.drop(key_of(autoscaler))

    async def reconcile(self, key: Key) -> float | None:
        """Look at the metrics, and scale."""
        autoscaler = self.own.get(key)
        if autoscaler is None:
            return None
        look = _Look(autoscaler, self.clock.now())
        try:
            await self._scale(look)
        except Unable as why:
            self.log.info("%s: %s", key, why)
        except (errors.APIError, OSError, TimeoutError) as error:
            self.log.warning("%s: %s", key, error)
        finally:
            await self._write(look)
        return self.period

    async def _write(self, look: _Look) -> None:
        before = look.autoscaler.status or HorizontalPodAutoscalerStatus()
        after = look.status
        same = (
            (before.current_replicas or 0) == (after.current_replicas or 0)
            and (before.desired_replicas or 0) == (after.desired_replicas or 0)
            and before.last_scale_time == after.last_scale_time
            and (before.current_metrics or []) == (after.current_metrics or [])
            and (before.conditions or []) == (after.conditions or [])
        )
        if same:
            return
        try:
            await self.client.update_status(msgspec.structs.replace(look.autoscaler, status=after))
        except errors.NotFound:
            return
        except (errors.APIError, OSError, TimeoutError) as error:
            # It is written the next time; sooner would be another look at the same metrics.
            self.recorder.event(look.autoscaler, WARNING, "FailedUpdateStatus", str(error))
            self.log.warning("%s: failed to update status: %s", look.key, error)

    async def _scale(self, look: _Look) -> None:
        resource, scale = await self._target(look)
        look.say(
            ABLE_TO_SCALE,
            True,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        current = (scale.spec.replicas if scale.spec else None) or 0
        history = self._histories.setdefault(look.key, History())
        history.begin(current, look.now)
        least = 1 if look.spec.min_replicas is None else look.spec.min_replicas
        most = look.spec.max_replicas or 0
        metrics: list[MetricStatus] | None = None
        why = ""
        if current == 0:
            look.say(
                SCALING_ACTIVE,
                False,
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
            desired = 0
        elif current > most:
            desired, why = most, _ABOVE
        elif current < least:
            desired, why = least, _BELOW
        else:
            answers, desired, name = await self._ask(look, scale, current)
            metrics = answers
            if desired > current:
                why = f"{name} above target"
            elif desired < current:
                why = "All metrics below target"
            desired = self._calm(look, history, current, desired, least, most)
        look.status.current_metrics = metrics
        look.status.current_replicas = current
        if desired == current:
            look.status.desired_replicas = current
            return
        await self._rescale(look, resource, scale, desired, why)
        history.scaled(look.spec.behavior, current, desired, look.now)
        look.status.desired_replicas = desired
        look.status.last_scale_time = rfc3339(look.now)

    # -- the target

    async def _target(self, look: _Look) -> tuple[Resource, Scale]:
        reference = look.spec.scale_target_ref or CrossVersionObjectReference()
        group = (reference.api_version or "").rpartition("/")[0]
        try:
            found = await self.scales.resources_of(group, reference.kind or "")
            first: errors.APIError | None = None
            for each in found:
                try:
                    return each.resource, await self.scales.get(each.resource, reference.name or "", look.key.namespace)
                except errors.APIError as error:
                    first = first or error
            raise first or errors.APIError("unrecognized resource")
        except (NoMatch, errors.APIError, OSError, TimeoutError) as error:
            self.recorder.event(look.autoscaler, WARNING, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            look.say(ABLE_TO_SCALE, False, "FailedGetScale", message)
            raise Unable(message) from None

    async def _rescale(self, look: _Look, resource: Resource, scale: Scale, desired: int, why: str) -> None:
        async def attempt() -> None:
            nonlocal scale
            assert scale.metadata is not None
            assert scale.spec is not None
            scale.spec.replicas = desired
            try:
                await self.scales.update(resource, scale)
            except errors.Conflict:
                scale = await self.scales.get(resource, scale.metadata.name or "", look.key.namespace)
                raise

        try:
            await retry_on_conflict(attempt)
        except (errors.APIError, OSError, TimeoutError) as error:
            message = f"New size: {desired}; reason: {why}; error: {error}"
            self.recorder.event(look.autoscaler, WARNING, "FailedRescale", message)
            message = f"the HPA controller was unable to update the target scale: {error}"
            look.say(ABLE_TO_SCALE, False, "FailedUpdateScale", message)
            raise Unable(message) from None
        message = f"the HPA controller was able to update the target scale to {desired}"
        look.say(ABLE_TO_SCALE, True, "SucceededRescale", message)
        self.recorder.event(look.autoscaler, NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {why}")

    # -- the metrics

    async def _ask(self, look: _Look, scale: Scale, current: int) -> tuple[list[MetricStatus], int, str]:
        """The statuses of all metrics, the largest number that one of them wants, and which one that is."""
        selector, pods = self._selector(look, scale)
        present = (scale.status.replicas if scale.status else None) or 0
        target = Target(look.key.namespace, selector, pods, current, present)
        tolerances = tolerances_of(look.autoscaler, self.options.horizontal_pod_autoscaler_tolerance)
        statuses: list[MetricStatus] = []
        best: Answer | None = None
        failures: list[MetricFailed] = []
        specs = look.spec.metrics or []
        for spec in specs:
            try:
                answer = await self.evaluator.evaluate(spec, target, tolerances)
            except MetricFailed as failure:
                self.recorder.event(look.autoscaler, WARNING, failure.reason, failure.why)
                failures.append(failure)
                statuses.append(MetricStatus(type=""))
                continue
            statuses.append(answer.status)
            if best is None or answer.replicas > best.replicas:
                best = answer
        # One metric that fails must not hide that another asks for more, but it may well be the one against less.
        if best is None or (failures and best.replicas < current):
            look.status.current_replicas = current
            look.status.current_metrics = statuses
            if not failures:
                raise Unable("no metrics")
            message = f"the HPA was unable to compute the replica count: {failures[0].why}"
            look.say(SCALING_ACTIVE, False, failures[0].reason, message)
            message = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {failures[0]}"
            self.recorder.event(look.autoscaler, WARNING, "FailedComputeMetricsReplicas", message)
            raise Unable(message)
        message = f"the HPA was able to successfully calculate a replica count from {best.name}"
        look.say(SCALING_ACTIVE, True, "ValidMetricFound", message)
        return statuses, best.replicas, best.name

    def _selector(self, look: _Look, scale: Scale) -> tuple[labels.Selector, list[Pod]]:
        """The target's selector and pods; no other autoscaler may select them."""
        text = (scale.status.selector if scale.status else None) or ""
        if not text:
            self.recorder.event(look.autoscaler, WARNING, "SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            look.say(SCALING_ACTIVE, False, "InvalidSelector", message)
            raise self._unable(look, scale, "selector is required")
        try:
            selector = labels.parse(text)
        except labels.SelectorError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self.recorder.event(look.autoscaler, WARNING, "InvalidSelector", message)
            look.say(SCALING_ACTIVE, False, "InvalidSelector", message)
            raise self._unable(look, scale, message) from None
        self._selectors.set(look.key, selector)
        pods = self._selected(look.key.namespace, selector)
        rivals = self._selectors.matching(look.key.namespace, map(labels_of, pods))
        if len(rivals) > 1:
            names = " ".join(f"{{{key.name} {key.namespace}}}" for key in rivals)
            message = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            self.recorder.event(look.autoscaler, WARNING, "AmbiguousSelector", message)
            look.say(SCALING_ACTIVE, False, "AmbiguousSelector", message)
            raise self._unable(look, scale, message)
        return selector, pods

    def _unable(self, look: _Look, scale: Scale, message: str) -> Unable:
        look.status.current_replicas = (scale.spec.replicas if scale.spec else None) or 0
        look.status.current_metrics = None
        self.recorder.event(look.autoscaler, WARNING, "FailedComputeMetricsReplicas", message)
        return Unable(message)

    def _selected(self, namespace: str, selector: labels.Selector) -> list[Pod]:
        return [pod for pod in self.pods.in_namespace(namespace) if selector.matches(labels_of(pod))]

    def _calm(self, look: _Look, history: History, current: int, desired: int, least: int, most: int) -> int:
        """Limit the desired replicas by stabilization, bounds and policies."""
        rules = look.spec.behavior
        window = self.options.horizontal_pod_autoscaler_downscale_stabilization
        stable = behavior.stabilize(history, rules, current=current, desired=desired, window=window, now=look.now)
        look.say(ABLE_TO_SCALE, True, stable.reason, stable.message)
        limited = behavior.limit(
            history, rules, current=current, desired=stable.replicas, least=least, most=most, now=look.now
        )
        look.say(SCALING_LIMITED, limited.replicas != stable.replicas, limited.reason, limited.message)
        return limited.replicas
