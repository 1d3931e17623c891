"""What a subject may do is worked out once, and anew when it could be different: the answers are those of now."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from pybernetes.api.times import SystemClock
from pybernetes.apiserver.admission.plugin import Chain
from pybernetes.apiserver.authz.resolver import resolver
from pybernetes.apiserver.registry.registry import Registry
from pybernetes.apiserver.user import User
from pybernetes.store import open_store
from pybernetes.store.cache import Cache

GROUP = "rbac.authorization.k8s.io"
PLURALS = {
    ClusterRole: "clusterroles",
    ClusterRoleBinding: "clusterrolebindings",
    Role: "roles",
    RoleBinding: "rolebindings",
}


@asynccontextmanager
async def registry() -> AsyncIterator[Registry]:
    store = open_store("memory://")
    await store.start()
    cache = Cache(store, [f"/registry/{plural}/" for plural in PLURALS.values()])
    await cache.start()
    try:
        yield Registry(cache, SystemClock(), Chain([]))
    finally:
        await cache.close()
        await store.close()


async def put(into: Registry, obj: Any) -> None:
    store = into.store(GROUP, "v1", PLURALS[type(obj)])
    item = store.peek(obj.metadata.namespace or "", obj.metadata.name)
    await (store.create(obj) if item is None else store.replace(item, obj))


async def drop(into: Registry, cls: Any, namespace: str, name: str) -> None:
    store = into.store(GROUP, "v1", PLURALS[cls])
    item = store.peek(namespace, name)
    if item is not None:
        await store.delete(item)


def rules(*verbs: str) -> list[PolicyRule]:
    return [PolicyRule(verbs=list(verbs), api_groups=[""], resources=["pods"])]


def binding(cls: Any, namespace: str | None, name: str, kind: str, role: str, *users: str) -> Any:
    return cls(
        metadata=ObjectMeta(name=name, namespace=namespace),
        subjects=[Subject(kind="User", name=user) for user in users],
        role_ref=RoleRef(api_group=GROUP, kind=kind, name=role),
    )


def plainly(model: dict[str, Any], user: str, namespace: str, verb: str) -> bool:
    """The same question, answered by looking at everything."""
    for each in model.values():
        if isinstance(each, ClusterRoleBinding | RoleBinding):
            where = each.metadata.namespace if each.metadata else None
            if where and where != namespace:
                continue
            if user not in [subject.name for subject in each.subjects or ()]:
                continue
            reference = each.role_ref
            assert reference is not None
            key = (
                f"ClusterRole//{reference.name}"
                if reference.kind == "ClusterRole"
                else f"Role/{where}/{reference.name}"
            )
            role = model.get(key)
            if role is not None and any(verb in (rule.verbs or ()) for rule in role.rules or ()):
                return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_now_after_any_changes(seed: int) -> None:
    async def run() -> None:
        draw = random.Random(seed)
        users, namespaces, verbs, names = ("u", "v"), ("a", "b"), ("get", "list"), ("x", "y", "z")
        model: dict[str, Any] = {}
        async with registry() as made:
            found = resolver(made)
            for _ in range(300):
                cls = draw.choice(list(PLURALS))
                namespace = draw.choice(namespaces) if cls in (Role, RoleBinding) else ""
                name = draw.choice(names)
                key = f"{cls.__name__}/{namespace}/{name}"
                if draw.random() < 0.3:
                    await drop(made, cls, namespace, name)
                    model.pop(key, None)
                else:
                    if cls in (Role, ClusterRole):
                        meta = ObjectMeta(name=name, namespace=namespace or None)
                        obj = cls(metadata=meta, rules=rules(*draw.sample(verbs, draw.randint(0, 2))))
                    else:
                        kind = "ClusterRole" if cls is ClusterRoleBinding else draw.choice(("Role", "ClusterRole"))
                        who = draw.sample(users, draw.randint(0, 2))
                        obj = binding(cls, namespace or None, name, kind, draw.choice(names), *who)
                    await put(made, obj)
                    model[key] = obj
                for user in users:
                    for where in (*namespaces, ""):
                        for verb in verbs:
                            grants = found.grants(User(user), where)
                            allowed = grants.resource((verb, "", "pods", ""), "p") is not None
                            assert allowed == plainly(model, user, where, verb), (user, where, verb, model)

    asyncio.run(run())


def test_a_change_in_one_namespace_leaves_what_is_known_of_others() -> None:
    async def run() -> None:
        async with registry() as made:
            await put(made, ClusterRole(metadata=ObjectMeta(name="r"), rules=rules("get")))
            await put(made, binding(RoleBinding, "a", "b", "ClusterRole", "r", "u"))
            found = resolver(made)
            kept = found.grants(User("u"), "a")
            await put(made, binding(RoleBinding, "other", "b", "ClusterRole", "r", "u"))
            assert found.grants(User("u"), "a") is kept
            await put(made, ClusterRole(metadata=ObjectMeta(name="r"), rules=rules("list")))
            assert found.grants(User("u"), "a") is not kept

    asyncio.run(run())
