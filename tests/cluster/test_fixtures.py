"""The `cluster` fixture that other tests stand on: an API server one can talk to in both ways it offers."""

from __future__ import annotations

import ssl
import subprocess
import urllib.request

import tools


def test_kubectl_and_the_token_both_reach_the_server(cluster: tools.ApiServer, kubectl: str) -> None:
    command = [kubectl, f"--kubeconfig={cluster.kubeconfig}", "get", "--raw=/readyz"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "ok"
    request = urllib.request.Request(f"{cluster.url}/version", headers={"Authorization": f"Bearer {cluster.token}"})
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    with urllib.request.urlopen(request, context=context) as answer:
        assert answer.status == 200
