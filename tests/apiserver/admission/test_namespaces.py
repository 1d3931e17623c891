"""NamespaceAutoProvision and SecurityContextDeny; and InitialResources on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apiserver.admission.conftest import server_with


def test_namespaces_come_by_themselves_and_security_contexts_are_denied(tmp_path: Path) -> None:
    flags = (
        "--enable-admission-plugins=NamespaceAutoProvision,SecurityContextDeny,InitialResources",
        "--disable-admission-plugins=ServiceAccount",
    )
    with server_with(tmp_path, *flags) as client:
        tried = client.post("/api/v1/namespaces/fresh/configmaps?dryRun=All", {"metadata": {"name": "c"}})
        assert tried.status == 404
        assert client.post("/api/v1/namespaces/fresh/configmaps", {"metadata": {"name": "c"}}).status == 201
        assert client.get("/api/v1/namespaces/fresh").json["status"]["phase"] == "Active"

        def refusal(context: dict[str, Any], of_container: dict[str, Any]) -> str:
            container = {"name": "a", "image": "b", "securityContext": of_container}
            spec = {"containers": [container], "securityContext": context}
            answer = client.post("/api/v1/namespaces/fresh/pods", {"metadata": {"name": "p"}, "spec": spec})
            return answer.message if answer.status == 403 else ""

        assert refusal({"runAsUser": 1}, {}) == 'pods "p" is forbidden: pod.Spec.SecurityContext.RunAsUser is forbidden'
        assert refusal({"fsGroup": 1}, {}).endswith("pod.Spec.SecurityContext.FSGroup is forbidden")
        assert refusal({"supplementalGroups": [1]}, {}).endswith("SecurityContext.SupplementalGroups is forbidden")
        assert refusal({"seLinuxOptions": {"user": "u"}}, {}).endswith("SecurityContext.SELinuxOptions is forbidden")
        assert refusal({}, {"runAsUser": 1}) == 'pods "p" is forbidden: SecurityContext.RunAsUser is forbidden'
        assert refusal({}, {"seLinuxOptions": {"user": "u"}}).endswith(": SecurityContext.SELinuxOptions is forbidden")
        assert refusal({}, {"runAsNonRoot": True}) == ""
