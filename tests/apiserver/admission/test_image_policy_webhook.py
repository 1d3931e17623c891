"""ImagePolicyWebhook: somebody else decides about images; their answers are kept for a while."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from apiserver.admission.conftest import server_with

from pybernetes.apiserver.admission.image_policy_webhook import read_configuration


class Backend:
    """Denies images with `bad` in their names, and counts the questions; `broken` ones get no answer."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                backend.seen.append(review)
                images = [each["image"] for each in review["spec"]["containers"]]
                bad = [each for each in images if "bad" in each]
                status = {"allowed": not bad, "reason": f"{bad[0]} is bad" if bad else ""}
                body = json.dumps({**review, "status": status}).encode()
                if any("broken" in each for each in images):
                    body = b"nonsense"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.mark.parametrize("default_allow", [True, False])
def test_images_are_judged_by_the_backend(tmp_path: Path, backend: Backend, default_allow: bool) -> None:
    address = f"http://127.0.0.1:{backend.server.server_port}/review"
    (tmp_path / "backend.conf").write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{address}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
    )
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
        spec = backend.seen[0]["spec"]
        assert spec["containers"] == [{"image": "good:1"}]
        assert spec["annotations"] == {"mycluster.image-policy.k8s.io/ticket-1234": "break-glass"}
        assert pod("again", "good:1", annotations=notes).status == 201
        assert len(backend.seen) == 1
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
