"""The operator as `kopf run` runs it, with $KUBECONFIG of a test cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybernetes.api import errors

pytest.importorskip("kopf")
HERE = Path(__file__).parent
POD = {"containers": [{"name": "main", "image": "nginx"}]}


def test_a_namespace_gets_its_quota_and_keeps_to_it(pyb_environment, pyb_client):
    argv = [sys.executable, "-m", "kopf", "run", "--all-namespaces", "--standalone", str(HERE / "operator_main.py")]
    with subprocess.Popen(argv, env=pyb_environment, stderr=subprocess.DEVNULL) as operator:
        try:
            namespace = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "small", "labels": {"quota": "1"}},
            }
            pyb_client.create(namespace)
            pyb_client.wait_for("resourcequotas", "pods", lambda each: each["status"].get("hard"), "small")
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": POD}
            pyb_client.create({**pod, "metadata": {"name": "one"}}, "small")
            with pytest.raises(errors.Forbidden, match="exceeded quota: pods"):
                pyb_client.create({**pod, "metadata": {"name": "two"}}, "small")
        finally:
            operator.terminate()
