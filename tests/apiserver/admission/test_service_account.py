"""ServiceAccount: an account, a token and pull secrets for every pod."""

from __future__ import annotations

import threading
import time

from apiserver.admission.conftest import Play
from apiserver.client import Client

from tools import wait_until

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}


def test_answers_as_upstream(play: Play) -> None:
    play("service_account")


def test_a_pod_waits_for_the_default_account_of_a_new_namespace(admin: Client) -> None:
    def let_in() -> bool:
        """It waits for a second or two; on a busy machine the account may come later."""
        path = f"/api/v1/namespaces/{admin.namespace()}"

        def later() -> None:
            time.sleep(0.15)  # as long as a controller may take
            assert admin.post(f"{path}/serviceaccounts", {"metadata": {"name": "default"}}).status == 201

        thread = threading.Thread(target=later)
        thread.start()
        status = admin.post(f"{path}/pods", POD).status
        thread.join()
        assert status in (201, 403)
        return status == 201

    wait_until(let_in, "a pod is let in as soon as there is an account")


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
