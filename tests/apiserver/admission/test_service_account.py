"""ServiceAccount: an account, a token and pull secrets for every pod."""

from __future__ import annotations

import threading
import time

from apiserver.admission.conftest import Play
from apiserver.client import Client

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}


def test_answers_as_upstream(play: Play) -> None:
    play("service_account")


def test_a_pod_waits_for_the_default_account_of_a_new_namespace(admin: Client) -> None:
    namespace = admin.namespace()

    def later() -> None:
        time.sleep(0.3)  # as long as a controller may take
        made = admin.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
        assert made.status == 201

    thread = threading.Thread(target=later)
    thread.start()
    assert admin.post(f"/api/v1/namespaces/{namespace}/pods", POD).status == 201
    thread.join()


def test_an_ephemeral_container_is_refused_foreign_secrets(admin: Client) -> None:
    """Upstream refuses it as well, with 500."""
    path = f"/api/v1/namespaces/{admin.namespace()}"
    meta = {"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    admin.post(f"{path}/serviceaccounts", {"metadata": meta})
    assert admin.post(f"{path}/pods", POD).status == 201
    variable = {"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}
    change = {"spec": {"ephemeralContainers": [{"name": "e", "image": "b", "env": [variable]}]}}
    answer = admin.patch(f"{path}/pods/p/ephemeralcontainers", change, "strategic")
    assert answer.status == 403
    assert "ephemeral container e with envVar E referencing secret" in answer.message
