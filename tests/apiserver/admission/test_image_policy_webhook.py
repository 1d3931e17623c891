"""ImagePolicyWebhook: a webhook decides about images; its answers are cached for a while."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.admission.conftest import server_with
from backends import Answer, Asked, Backend, kubeconfig_of

from pybernetes.apiserver.admission.image_policy_webhook import read_configuration


class Judge(Backend):
    """Denies images with `bad` in their names, and counts the questions; `broken` ones get no answer."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        super().__init__(self._judge)

    def _judge(self, asked: Asked) -> Answer:
        review = asked.json
        self.seen.append(review)
        images = [each["image"] for each in review["spec"]["containers"]]
        if any("broken" in each for each in images):
            return Answer("nonsense")
        bad = [each for each in images if "bad" in each]
        return Answer({**review, "status": {"allowed": not bad, "reason": f"{bad[0]} is bad" if bad else ""}})


@pytest.fixture
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.close()


@pytest.mark.parametrize("default_allow", [True, False])
def test_images_are_judged_by_the_backend(tmp_path: Path, judge: Judge, default_allow: bool) -> None:
    (tmp_path / "backend.conf").write_text(json.dumps(kubeconfig_of(f"{judge.origin}/review")))
    policy = {"kubeConfigFile": str(tmp_path / "backend.conf"), "retryBackoff": 1, "defaultAllow": default_allow}
    (tmp_path / "admission.json").write_text(json.dumps({"imagePolicy": policy}))
    flags = (
        "--enable-admission-plugins=ImagePolicyWebhook",
        "--disable-admission-plugins=ServiceAccount",
        f"--admission-control-config-file={tmp_path}/admission.json",
    )
    with server_with(tmp_path, *flags) as client:
        path = f"/api/v1/namespaces/{client.namespace()}/pods"

        def pod(name: str, image: str, **meta: Any) -> Any:
            spec = {"containers": [{"name": "a", "image": image}]}
            return client.post(path, {"metadata": {"name": name, **meta}, "spec": spec})

        notes = {"mycluster.image-policy.k8s.io/ticket-1234": "break-glass", "other": "x"}
        assert pod("good", "good:1", annotations=notes).status == 201
        spec = judge.seen[0]["spec"]
        assert spec["containers"] == [{"image": "good:1"}]
        assert spec["annotations"] == {"mycluster.image-policy.k8s.io/ticket-1234": "break-glass"}
        assert pod("again", "good:1", annotations=notes).status == 201
        assert len(judge.seen) == 1
        refused = pod("bad", "bad:1")
        assert refused.status == 403
        assert refused.message.endswith("image policy webhook backend denied one or more images: bad:1 is bad")
        broken = pod("broken", "broken:1")
        assert broken.status == (201 if default_allow else 403)
        if default_allow:
            assert broken.json["metadata"]["annotations"] == {"alpha.image-policy.k8s.io/failed-open": "true"}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (None, "no config specified"),
        ({"imagePolicy": {"allowTTL": 1801}}, "allowTTL: valid value is between 1s and 1800s, got 1801s"),
        ({"imagePolicy": {"retryBackoff": 600_000}}, "retryBackoff: valid value is between"),
        ({"imagePolicy": {"defaultAllow": "yes"}}, "Expected `bool`"),
    ],
)
def test_a_bad_configuration_is_refused(document: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_configuration(document)


def test_times_have_defaults_and_can_be_switched_off() -> None:
    read = read_configuration({"imagePolicy": {"denyTTL": -1}})
    assert (read.allow_ttl, read.deny_ttl, read.retry_backoff) == (300, 0, 0.5)
