"""OwnerReferencesPermissionEnforcement: who may name an owner, and who may hold one up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.errors import Forbidden
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.resources import RESOURCES
from pybernetes.apiserver.admission.owner_references_permission_enforcement import (
    OwnerReferencesPermissionEnforcement,
)
from pybernetes.apiserver.admission.plugin import CREATE, UPDATE, Attributes
from pybernetes.apiserver.authz.authorizer import Decision
from pybernetes.apiserver.requestinfo import RequestInfo
from pybernetes.apiserver.user import User

MAPS = next(each for each in RESOURCES if each.fullname == "configmaps")


class Grants:
    """Allows what is listed, as `verb resource/subresource name`."""

    kind = name = "test"

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        what = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        return (Decision.ALLOW if f"{info.verb} {what} {info.name}" in self._allowed else Decision.NO_OPINION), "no"


def config_map(*owners: OwnerReference) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="c", namespace="n", owner_references=list(owners) or None))


def owner(uid: str = "u", *, block: bool | None = None, kind: str = "ReplicaSet") -> OwnerReference:
    return OwnerReference("apps/v1", kind, "r", uid, None, block)


async def verdict(new: ConfigMap, old: ConfigMap | None, *allowed: str) -> str:
    registry: Any = SimpleNamespace(authorizers=[Grants(*allowed)], custom_resources=list)
    operation = CREATE if old is None else UPDATE
    attributes = Attributes(operation, MAPS, "", "n", "c", new, old, User("u"), False, [])
    try:
        pending = OwnerReferencesPermissionEnforcement(registry).validate(attributes)
        if pending is not None:
            await pending
    except Forbidden as error:
        return error.message.partition("forbidden: ")[2]
    return ""


NO_DELETE = "cannot set an ownerRef on a resource you can't delete: no, <nil>"
NO_FINALIZERS = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no, <nil>"
)


@pytest.mark.parametrize(
    ("new", "old", "allowed", "refusal"),
    [
        (config_map(owner()), None, (), ""),
        (config_map(owner()), config_map(owner()), (), ""),
        (config_map(owner()), config_map(), (), NO_DELETE),
        (config_map(), config_map(owner()), (), NO_DELETE),
        (config_map(owner()), config_map(), ("delete configmaps c",), ""),
        (config_map(owner(block=True)), None, (), NO_FINALIZERS),
        (config_map(owner(block=True)), None, ("update replicasets/finalizers r",), ""),
        (config_map(owner(block=True)), None, ("update */finalizers *",), ""),
        (config_map(owner(block=True)), config_map(owner(block=False)), ("delete configmaps c",), NO_FINALIZERS),
        (config_map(owner(block=False)), config_map(owner(block=True)), ("delete configmaps c",), ""),
    ],
)
async def test_verdicts(new: ConfigMap, old: ConfigMap | None, allowed: tuple[str, ...], refusal: str) -> None:
    assert await verdict(new, old, *allowed) == refusal


async def test_an_owner_of_an_unknown_kind_is_refused() -> None:
    refusal = await verdict(config_map(owner(block=True, kind="Nix")), None)
    assert "cannot find RESTMapping for APIVersion apps/v1 Kind Nix" in refusal
