"""The Pod Security Standards, enforced, audited or warned about as a namespace's labels say.

Pods are refused; the templates of controllers are only warned about, because it is their pods that will be refused.
When a namespace's level is raised, a warning lists its pods that would be rejected now.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api.core.v1 import Namespace, Pod, PodSpec
from pybernetes.api.errors import InternalError, Invalid
from pybernetes.api.field import FieldError
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta

from ...registry.lister import Lister, lister
from ..plugin import CREATE, UPDATE, Attributes, Plugin, forbidden
from .policy import LENIENT, LEVELS, PREFIX, PRIVILEGED, LevelVersion, Policy, policy_of

if TYPE_CHECKING:
    from ...registry.registry import Registry

_TEMPLATES: Final = (
    "replicationcontrollers",
    "podtemplates",
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
)
_MOST_PODS: Final = 3000  # upstream's
_PATIENCE: Final = 1.0  # seconds for the pods of a namespace; upstream's

_POLICIES = 4096  # namespaces whose policies are remembered


class PodSecurity(Plugin):
    """Upstream's PodSecurity."""

    name = "PodSecurity"
    operations = (CREATE, UPDATE)
    resources = ("namespaces", "pods", "pods/ephemeralcontainers", "pods/resize", *_TEMPLATES)

    def __init__(self, registry: Registry, configuration: Any = None) -> None:
        super().__init__(registry)
        self._defaults = LENIENT
        self._namespaces = self._users = self._classes = frozenset[str]()
        if configuration is not None:
            from .configuration import read_configuration

            read = read_configuration(configuration)
            self._defaults = read.policy()
            self._namespaces = frozenset(read.exemptions.namespaces)
            self._users = frozenset(read.exemptions.usernames)
            self._classes = frozenset(read.exemptions.runtime_classes)
        self._policies: dict[str, tuple[Namespace, Policy, list[FieldError]]] = {}

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        plural = attributes.resource.plural
        if plural == "namespaces":
            self._validate_namespace(attributes)
            return None
        if attributes.namespace in self._namespaces:
            attributes.annotate(f"{PREFIX}exempt", "namespace")
            return None
        if attributes.user.name in self._users:
            attributes.annotate(f"{PREFIX}exempt", "user")
            return None
        namespace = self._all_namespaces.get("", attributes.namespace)
        if namespace is None:
            return self._look_again(attributes)
        self._judge(attributes, namespace)
        return None

    async def _look_again(self, attributes: Attributes) -> None:
        """Another server may have made the namespace a moment ago."""
        namespace = await self._all_namespaces.find("", attributes.namespace)
        if namespace is None:
            raise InternalError(f"failed to lookup namespace {quote(attributes.namespace)}")
        self._judge(attributes, namespace)

    # -- pods and templates -------------------------------------------------------------------------------------

    def _judge(self, attributes: Attributes, namespace: Namespace) -> None:
        policy, errors = self._policy(namespace)
        enforces = attributes.resource.plural == "pods"
        if not errors:
            if policy.privileged:
                if enforces and attributes.annotations is not None:
                    attributes.annotate(f"{PREFIX}enforce-policy", "privileged:latest")
                return
            if not enforces and policy.warn.level == policy.audit.level == PRIVILEGED:
                return
        new, old = attributes.new, attributes.old
        if enforces and attributes.operation == UPDATE and not _significant(new.spec, old.spec):
            return
        template = new if enforces else _template(new)
        if template is None or template.spec is None:
            return
        if template.spec.runtime_class_name in self._classes:
            attributes.annotate(f"{PREFIX}exempt", "runtimeClass")
            return
        if errors:
            text = "; ".join(str(each) for each in errors)
            attributes.annotate(f"{PREFIX}error", f"Failed to parse policy: {text}")
        self._evaluate(attributes, policy, template.metadata or ObjectMeta(), template.spec, enforces)

    def _evaluate(
        self, attributes: Attributes, policy: Policy, meta: ObjectMeta, spec: PodSpec, enforces: bool
    ) -> None:
        from .checks import detail, violations

        known: dict[LevelVersion, str] = {}

        def against(standard: LevelVersion) -> str:
            if standard not in known:
                known[standard] = detail(violations(standard, meta.annotations, spec))
            return known[standard]

        audited = against(policy.audit)
        if audited:
            text = f'would violate PodSecurity "{policy.audit}": {audited}'
            attributes.annotate(f"{PREFIX}audit-violations", text)
        if enforces:
            attributes.annotate(f"{PREFIX}enforce-policy", str(policy.enforce))
            refused = against(policy.enforce)
            if refused:
                raise forbidden(attributes, f'violates PodSecurity "{policy.enforce}": {refused}')
        warned = against(policy.warn)
        if warned:
            attributes.warnings.append(f'would violate PodSecurity "{policy.warn}": {warned}')

    # -- namespaces ---------------------------------------------------------------------------------------------

    def _validate_namespace(self, attributes: Attributes) -> None:
        namespace: Namespace = attributes.new
        meta = namespace.metadata or ObjectMeta()
        policy, errors = policy_of(meta.labels, self._defaults)
        old: tuple[Policy, list[FieldError]] | None = None
        if attributes.operation == UPDATE:
            old = policy_of(attributes.old.metadata.labels, self._defaults)
        if errors and (old is None or errors != old[1]):
            raise Invalid("", "Namespace", attributes.name, errors)
        if old is not None and not _raised(policy.enforce, old[0].enforce):
            return
        if attributes.name in self._namespaces:
            self._warn_exempt(attributes, policy, meta.labels or {})
        elif old is not None:
            attributes.warnings.extend(self._pods_against(attributes.name, policy.enforce))

    def _warn_exempt(self, attributes: Attributes, policy: Policy, labels: dict[str, str]) -> None:
        """Warn that an exempt namespace's policy has no effect."""
        if policy.privileged or policy.means(self._defaults):
            return
        said = [
            f"{mode}={standard}"
            for mode, standard in zip(("enforce", "audit", "warn"), policy, strict=True)
            if standard.level != PRIVILEGED and (f"{PREFIX}{mode}" in labels or f"{PREFIX}{mode}-version" in labels)
        ]
        attributes.warnings.append(
            f"namespace {quote(attributes.name)} is exempt from Pod Security, "
            f"and the policy ({', '.join(said)}) will be ignored"
        )

    def _pods_against(self, namespace: str, standard: LevelVersion) -> Iterator[str]:
        """Which pods of a namespace violate its new level, those with the same faults together."""
        from .checks import reason, violations

        deadline = time.monotonic() + _PATIENCE
        pods = list(self._by_importance(lister(self.registry, "", "v1", "pods").list(namespace)))
        faulty: dict[str, list[str]] = {}
        checked = 0
        for pod in pods[:_MOST_PODS]:
            meta = pod.metadata or ObjectMeta()
            found = violations(standard, meta.annotations, pod.spec or PodSpec())
            if found:
                faulty.setdefault(reason(found), []).append(meta.name or "")
            checked += 1
            if time.monotonic() > deadline:
                break
        if checked < len(pods):
            yield (
                f"new PodSecurity enforce level only checked against the first {checked} of {len(pods)} existing pods"
            )
        if faulty:
            yield (
                f'existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level "{standard}"'
            )
        yield from sorted(f"{_with_others(names)}: {faults}" for faults, names in faulty.items())

    def _by_importance(self, pods: list[Pod]) -> list[Pod]:
        """One pod of each controller before the others of it."""
        first: list[Pod] = []
        rest: list[Pod] = []
        seen: set[str | None] = set()
        for pod in pods:
            if pod.spec is not None and pod.spec.runtime_class_name in self._classes:
                continue
            owners = (pod.metadata.owner_references if pod.metadata else None) or ()
            uid = next((each.uid for each in owners if each.controller), None)
            (rest if uid is not None and uid in seen else first).append(pod)
            seen.add(uid)
        return first + rest

    def _policy(self, namespace: Namespace) -> tuple[Policy, list[FieldError]]:
        name = (namespace.metadata.name if namespace.metadata else None) or ""
        known = self._policies.get(name)
        if known is None or known[0] is not namespace:
            labels = namespace.metadata.labels if namespace.metadata else None
            if len(self._policies) >= _POLICIES:
                self._policies.clear()
            known = self._policies[name] = (namespace, *policy_of(labels, self._defaults))
        return known[1], known[2]

    @cached_property
    def _all_namespaces(self) -> Lister[Namespace]:
        return lister(self.registry, "", "v1", "namespaces")


def _raised(new: LevelVersion, old: LevelVersion) -> bool:
    """Whether pods that were let in before may not be let in now."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.version != old.version or LEVELS.index(new.level) > LEVELS.index(old.level)


def _significant(new: PodSpec, old: PodSpec) -> bool:
    """Whether an update brings in an image that has not been judged before."""
    for after, before in ((new.containers, old.containers), (new.init_containers, old.init_containers)):
        if [each.image for each in after or ()] != [each.image for each in before or ()]:
            return True
    known = {each.name: each.image for each in old.ephemeral_containers or ()}
    return any(known.get(each.name, "") != each.image for each in new.ephemeral_containers or ())


def _template(obj: Any) -> Any:
    """The pod template of a controller's object."""
    if hasattr(obj, "template"):
        return obj.template
    spec = obj.spec
    if spec is None:
        return None
    if hasattr(spec, "job_template"):
        spec = spec.job_template.spec if spec.job_template is not None else None
    return spec.template if spec is not None else None


def _with_others(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"
