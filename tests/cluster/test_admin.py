"""The administrator's own requests to a real API server, over one connection."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

import tools
from pybernetes.cluster.admin import Admin, node_ready


@pytest.fixture
def admin(cluster: tools.ApiServer) -> Admin:
    address = urlsplit(cluster.url)
    return Admin(address.hostname or "", address.port or 0, cluster.folder / "pki")


def test_objects_are_made_once_and_found(admin: Admin) -> None:
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "of-the-admin"}}
    code, made = admin.request("POST", "/api/v1/namespaces", content)
    assert (code, made["kind"]) == (201, "Namespace")
    code, refused = admin.request("POST", "/api/v1/namespaces", content)
    assert (code, refused["reason"]) == (409, "AlreadyExists")
    assert admin.request("GET", "/api/v1/namespaces/of-the-admin")[0] == 200
    assert admin.request("GET", "/api/v1/nodes/none")[0] == 404
    admin.close()


def test_a_connection_that_broke_is_made_anew(admin: Admin) -> None:
    assert admin.request("GET", "/api/v1/namespaces/default")[0] in (200, 404)
    connection = admin._connection
    assert connection is not None
    connection.close()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on how it broke
        admin.request("GET", "/version")
    assert admin.request("GET", "/version")[0] == 200
    admin.close()


def test_a_node_is_ready_only_if_it_says_so() -> None:
    assert not node_ready({})
    assert not node_ready({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert node_ready({"status": {"conditions": [{"type": "MemoryPressure"}, {"type": "Ready", "status": "True"}]}})
