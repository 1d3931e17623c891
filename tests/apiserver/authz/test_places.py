"""Who may do everything in a namespace can do nothing to the cluster by writing the namespace into the path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from apiserver.authz.conftest import RBAC, User, binding, check
from apiserver.client import Client

from pybernetes.api.resources import RESOURCES, Resource

CLUSTER_WIDE = [each for each in RESOURCES if not each.namespaced]
METHODS = ("GET", "PUT", "PATCH", "DELETE", "POST")


@pytest.fixture(scope="module")
def owner(admin: Client) -> User:
    """All rights in one namespace, whose name is that of the user."""
    place = admin.namespace("owned-")
    check(admin.post(f"{RBAC}/namespaces/{place}/rolebindings", binding("owner", "cluster-admin", place)), 201)
    user = User(admin.server, place)
    check(user.get(f"/api/v1/namespaces/{place}/pods"), 200)
    return user


@pytest.mark.parametrize("resource", CLUSTER_WIDE, ids=lambda each: f"{each.group}/{each.version}/{each.plural}")
def test_what_is_in_no_namespace_is_not_reached_through_one(owner: User, resource: Resource) -> None:
    base = f"{resource.path}/namespaces/{owner.name}/{resource.plural}"
    paths = [base, f"{base}?watch=1&timeoutSeconds=1", f"{base}/x"]
    paths += [f"{base}/x/{each.name}" for each in resource.subresources]
    reached = [
        (method, path, status)
        for path in paths
        for method in METHODS
        if (status := owner(method, path, {} if method in ("PUT", "PATCH", "POST") else None).status) not in (403, 404)
    ]
    assert reached == []


def test_a_namespace_is_in_itself_and_in_no_other(owner: User, admin: Client) -> None:
    other = admin.namespace("other-")
    mine = f"/api/v1/namespaces/{owner.name}"
    check(owner.get(mine), 200)
    check(owner.get(f"{mine}/status"), 200)
    check(owner.get(f"/api/v1/namespaces/{other}"), 403)
    check(owner.get(f"{mine}/namespaces/{other}"), 404)
    check(owner.get(f"{mine}/namespaces/{owner.name}"), 404)
    check(owner.put(f"{mine}/namespaces/{owner.name}/finalize", {}), 404)
    check(owner.get(f"{mine}/namespaces"), 404)
    check(owner.get("/api/v1/namespaces?watch=1&timeoutSeconds=1"), 403)
    check(owner.get(f"{mine}/namespaces?watch=1&timeoutSeconds=1"), 404)
    check(owner.get(f"/api/v1/watch{mine.removeprefix('/api/v1')}/namespaces?timeoutSeconds=1"), 404)


def test_a_watch_of_the_own_namespace_tells_of_no_other(owner: User, admin: Client) -> None:
    answer = check(owner.get(f"/api/v1/watch/namespaces/{owner.name}?timeoutSeconds=1"), 200)
    assert [line.count(b'"ADDED"') for line in answer.body.splitlines()] == [1]
    assert owner.name.encode() in answer.body


def test_what_is_in_a_namespace_is_not_reached_without_one(admin: Client) -> None:
    tried: Callable[[str], int] = lambda path: admin.get(path).status  # noqa: E731
    assert tried("/api/v1/pods/x") == 404
    assert tried("/api/v1/pods/x/status") == 404
    assert tried("/apis/apps/v1/deployments/x/scale") == 404
