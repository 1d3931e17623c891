"""`pyb image build` with a cluster that runs: pods of what was built, on either runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

from node.cluster import Cluster

from tools import wait_until

DOCKERFILE = """
FROM busybox AS build
ARG WORD
RUN echo "built $WORD" > /text && mkdir -p /data && echo seed > /data/seed && chown -R 7:8 /data && rm /etc/group
FROM build
COPY --from=build --chown=7:8 /text /srv/text
USER 7:8
VOLUME /data
CMD cat /srv/text /data/seed; ls /etc/group; echo mine > /data/own; exec sleep 1000
"""


def test_pods_run_what_was_built(node: Cluster, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    node.kubectl("create", "namespace", "built")
    for word, pull in (("one", "IfNotPresent"), ("two", "Always")):
        said = node.pyb_image("build", "-t", "example.org/built:1", "--build-arg", f"WORD={word}", str(tmp_path))
        assert "Built example.org/built:1" in said
        node.kubectl("run", word, "-n", "built", "--image=example.org/built:1", f"--image-pull-policy={pull}")
        node.kubectl("wait", "-n", "built", "--for=condition=Ready", f"pod/{word}", "--timeout=60s")
        logged = wait_until(lambda word=word: _said(node, word), f"the output of {word}")
        expected = [f"built {word}", "seed", "ls: /etc/group: No such file or directory"]
        assert sorted(logged.splitlines()) == sorted(expected)  # two streams have no order between them
        own = node.kubectl("exec", "-n", "built", word, "--", "stat", "-c", "%u:%g", "/data", "/data/own")
        assert own.split() == ["7:8", "7:0"]  # the group of a user that only the image names is root's
        assert " /data " in node.kubectl("exec", "-n", "built", word, "--", "cat", "/proc/mounts")
    node.kubectl("delete", "namespace", "built", "--wait=false")
    node.pyb_image("export", "example.org/built:1", str(tmp_path / "out.tar"))
    assert subprocess.run(["tar", "tf", tmp_path / "out.tar"], capture_output=True).stdout.startswith(b"oci-layout")
    assert "Removed example.org/built:1 from node-1" in node.pyb_image("rm", "example.org/built:1")


def _said(node: Cluster, pod: str) -> str:
    found = node.kubectl("logs", "-n", "built", pod)
    return found if "group" in found else ""
