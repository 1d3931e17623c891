"""How webhook configurations and admission policies are created and updated: every change is a new generation."""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus
from pybernetes.api.equality import semantically_equal
from pybernetes.api.gocompat.quote import quote
from pybernetes.apiserver.registry.strategy import Context, Strategy

from .metadata import keep_metadata

STATIC_SUFFIX: Final = ".static.k8s.io"


class AdmissionStrategy(Strategy):
    """Shared by all kinds of the group."""

    has_generation = True
    allow_unconditional_update = False

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        if not (obj.metadata.name or "").endswith(STATIC_SUFFIX):
            return []
        return [
            f"metadata.name: names ending with {quote(STATIC_SUFFIX)} are reserved for "
            "static manifest-based configurations and cannot be managed via the API"
        ]


class WebhookConfigurationStrategy(AdmissionStrategy):
    """MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

    def changed(self, new: Any, old: Any) -> bool:
        return bool(new.webhooks != old.webhooks)


class PolicyStrategy(AdmissionStrategy):
    """Policies and bindings. Validation compiles the expressions of policies."""

    costly = True

    def changed(self, new: Any, old: Any) -> bool:
        return not semantically_equal(new.spec, old.spec)


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    """ValidatingAdmissionPolicies."""

    def prepare_for_create(self, obj: ValidatingAdmissionPolicy, context: Context) -> None:
        super().prepare_for_create(obj, context)
        obj.status = ValidatingAdmissionPolicyStatus()

    def prepare_for_status_update(self, new: Any, old: Any, context: Context) -> None:
        new.spec = old.spec
        keep_metadata(new, old)


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "mutatingadmissionpolicies": PolicyStrategy,
    "mutatingadmissionpolicybindings": PolicyStrategy,
    "mutatingwebhookconfigurations": WebhookConfigurationStrategy,
    "validatingadmissionpolicies": ValidatingAdmissionPolicyStrategy,
    "validatingadmissionpolicybindings": PolicyStrategy,
    "validatingwebhookconfigurations": WebhookConfigurationStrategy,
}
