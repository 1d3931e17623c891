"""ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from pybernetes.api.core.v1.reference import ObjectReference
from pybernetes.api.core.v1.serviceaccount import ServiceAccount
from pybernetes.apiserver.registry.strategy import Context, Strategy

ENFORCE_MOUNTABLE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"


class SecretStrategy(Strategy):
    """A type that an update leaves out stays; a TLS pair that does not fit is worth a warning."""

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        if not new.type:
            new.type = old.type

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        if obj.type != "kubernetes.io/tls":
            return []
        from .tls import key_pair_problem

        data = obj.data or {}
        problem = key_pair_problem(b64decode(data.get("tls.crt", "")), b64decode(data.get("tls.key", "")))
        return [problem] if problem else []


class ServiceAccountStrategy(Strategy):
    """Of secrets only the names are kept."""

    returns_deleted = True

    def prepare_for_create(self, obj: Any, context: Context) -> None:
        _keep_names(obj)

    def prepare_for_update(self, new: Any, old: Any, context: Context) -> None:
        _keep_names(new)

    def warnings_on_create(self, obj: Any, context: Context) -> list[str]:
        return _warnings(obj, None)

    def warnings_on_update(self, new: Any, old: Any, context: Context) -> list[str]:
        return _warnings(new, old)


def _keep_names(account: ServiceAccount) -> None:
    if account.secrets:
        account.secrets = [ObjectReference(name=secret.name) for secret in account.secrets]


def _warnings(account: ServiceAccount, old: ServiceAccount | None) -> list[str]:
    if _enforces(account) and not (old and _enforces(old)):
        return [
            f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
            "prefer separate namespaces to isolate access to mounted secrets"
        ]
    return []


def _enforces(account: ServiceAccount) -> bool:
    return ENFORCE_MOUNTABLE_SECRETS in ((account.metadata and account.metadata.annotations) or {})


STRATEGIES: Final[dict[str, type[Strategy]]] = {
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
}
