"""A private registry (Debian's docker-registry with passwords) proves `imagePullSecrets`, policies and their words."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster

import tools
from pybernetes.cluster.images import builtin, oci

NAMESPACE = "registry"
REFUSED = ("ErrImagePull", "ImagePullBackOff")
USER, PASSWORD = "alice", "s3cret"


@dataclass(frozen=True)
class Registry:
    """A registry that needs a password, reachable from the node."""

    host: str

    def image(self, name: str) -> str:
        return f"{self.host}/{name}"

    def login(self, password: str = PASSWORD, host: str = "") -> str:
        """A docker config with credentials for it."""
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        return json.dumps({"auths": {host or self.host: {"auth": auth}}})


@pytest.fixture(scope="module")
def registry(node: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    missing = [each for each in ("docker-registry", "htpasswd", "skopeo") if shutil.which(each) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("registry")
    host = f"{node.machine().gateway}:{tools.free_port(node.machine().gateway)}"
    words = ["htpasswd", "-Bbn", USER, PASSWORD]
    (folder / "htpasswd").write_bytes(subprocess.run(words, check=True, capture_output=True).stdout)
    settings = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host},
        "auth": {"htpasswd": {"realm": "lab", "path": str(folder / "htpasswd")}},
    }
    (folder / "config.yml").write_text(json.dumps(settings))
    _trust(node, host)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(folder / "config.yml")], stdout=log, stderr=log)
    try:
        tools.wait_until(lambda: _listens(host), f"the registry ({folder}/log)")
        _push(folder, host, "private/busybox:1", "private/busybox:2")
        node.kubectl("create", "namespace", NAMESPACE)
        yield Registry(host)
        node.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    finally:
        process.terminate()
        process.wait()


def _listens(host: str) -> bool:
    address, _, port = host.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((address, int(port))) == 0


def _trust(node: Cluster, host: str) -> None:
    """Tells the node's runtime that the registry speaks plain HTTP."""
    folder = node.layout.registries / host
    folder.mkdir(parents=True)
    (folder / "hosts.toml").write_text(
        f'server = "http://{host}"\n[host."http://{host}"]\n  capabilities = ["pull", "resolve"]\n'
    )


def _push(folder: Path, host: str, *names: str) -> None:
    program = builtin.busybox_program()
    assert program is not None
    for name in names:
        # Other bytes for each: else one is there as soon as the other has been pulled.
        entries = [*builtin.busybox_entries(program), oci.file("name", name.encode())]
        oci.write(folder / "image.tar", oci.Image(names=[f"x/{name}"], entries=entries, command=["sh"]))
        command = ["skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", f"--dest-creds={USER}:{PASSWORD}"]
        target = [f"oci-archive:{folder}/image.tar", f"docker://{host}/{name}"]
        done = subprocess.run([*command, *target], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def pod(name: str, image: str, policy: str = "Always", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": policy,
        "command": ["sh", "-c", "cat /name; echo; exec sleep 600"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def secret(name: str, content: str, kind: str = "kubernetes.io/dockerconfigjson") -> dict[str, Any]:
    key = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}[kind]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {key: base64.b64encode(content.encode()).decode()},
    }


def wait_ready(node: Cluster, name: str) -> None:
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=110s", f"pod/{name}")


def waiting(node: Cluster, name: str) -> dict[str, str]:
    statuses = node.get("pod", "-n", NAMESPACE, name)["status"].get("containerStatuses", [{}])
    found: dict[str, str] = statuses[0].get("state", {}).get("waiting", {})
    return found


def events(node: Cluster, name: str) -> list[tuple[str, str]]:
    selector = f"--field-selector=involvedObject.name={name}"
    return [(each["reason"], each["message"]) for each in node.get("events", "-n", NAMESPACE, selector)["items"]]


def told(node: Cluster, name: str, reason: str, words: str) -> str:
    """The message of an event with these words, as soon as there is one."""
    found: list[tuple[str, str]] = []

    def look() -> str:
        found[:] = events(node, name)
        return next((text for kind, text in found if kind == reason and words in text), "")

    return tools.wait_until(look, f"{reason}: {words} in {found}", 60, every=0.1)


def test_without_a_password_nothing_is_pulled_and_the_pod_says_so(node: Cluster, registry: Registry) -> None:
    image = registry.image("private/busybox:1")
    node.apply(pod("nobody", image))
    tools.wait_until(lambda: waiting(node, "nobody").get("reason") in REFUSED, "a failure", 60, every=0.1)
    assert told(node, "nobody", "Failed", "401 Unauthorized").startswith(f'Failed to pull image "{image}": ')
    assert told(node, "nobody", "Failed", "Error: ErrImagePull") == "Error: ErrImagePull"
    assert told(node, "nobody", "Pulling", image) == f'Pulling image "{image}"'
    node.kubectl("delete", "pod", "-n", NAMESPACE, "nobody", "--wait=true")


def test_a_pod_names_the_secret_with_the_password(node: Cluster, registry: Registry) -> None:
    image = registry.image("private/busybox:1")
    node.apply(secret("login", registry.login()), pod("named", image, imagePullSecrets=[{"name": "login"}]))
    wait_ready(node, "named")
    logged = tools.wait_until(lambda: node.kubectl("logs", "-n", NAMESPACE, "named"), "its log")
    assert logged.startswith("private/busybox:1")
    assert told(node, "named", "Pulled", image).startswith(f'Successfully pulled image "{image}" in ')
    status = node.get("pod", "-n", NAMESPACE, "named")["status"]["containerStatuses"][0]
    assert status["image"] == image
    assert status["imageID"].startswith(f"{registry.host}/private/busybox@sha256:")
    node.kubectl("delete", "pod", "-n", NAMESPACE, "named", "--wait=true")


def test_a_service_account_brings_the_secret_to_its_pods(node: Cluster, registry: Registry) -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "puller", "namespace": NAMESPACE},
        "imagePullSecrets": [{"name": "account-login"}],
    }
    node.apply(secret("account-login", registry.login()), account)
    node.apply(pod("by-account", registry.image("private/busybox:2"), serviceAccountName="puller"))
    wait_ready(node, "by-account")
    made = node.get("pod", "-n", NAMESPACE, "by-account")
    assert made["spec"]["imagePullSecrets"] == [{"name": "account-login"}]
    node.kubectl("delete", "pod", "-n", NAMESPACE, "by-account", "--wait=true")


def test_the_old_form_of_secrets_and_kubectls_own_work_too(node: Cluster, registry: Registry) -> None:
    auths = json.loads(registry.login())["auths"]
    node.apply(secret("old", json.dumps(auths), "kubernetes.io/dockercfg"))
    options = [f"--docker-server={registry.host}", f"--docker-username={USER}", f"--docker-password={PASSWORD}"]
    node.kubectl("create", "secret", "docker-registry", "-n", NAMESPACE, "by-kubectl", *options)
    for name in ("old", "by-kubectl"):
        node.apply(pod(f"with-{name}", registry.image("private/busybox:2"), imagePullSecrets=[{"name": name}]))
    for name in ("old", "by-kubectl"):
        wait_ready(node, f"with-{name}")
    node.kubectl("delete", "pod", "-n", NAMESPACE, "with-old", "with-by-kubectl", "--wait=true")


def test_of_several_secrets_the_one_that_fits_is_used(node: Cluster, registry: Registry) -> None:
    node.apply(
        secret("wrong", registry.login("wrong")),
        secret("elsewhere", registry.login(host="registry.example.com")),
        secret("right", registry.login()),
        pod(
            "several",
            registry.image("private/busybox:2"),
            imagePullSecrets=[{"name": "missing"}, {"name": "elsewhere"}, {"name": "wrong"}, {"name": "right"}],
        ),
    )
    wait_ready(node, "several")
    told(node, "several", "FailedToRetrieveImagePullSecret", "missing")
    node.kubectl("delete", "pod", "-n", NAMESPACE, "several", "--wait=true")


@pytest.mark.soak  # the back-off of an image is 10 s and more
def test_a_secret_that_comes_later_lets_the_pod_go_on(node: Cluster, registry: Registry) -> None:
    node.apply(pod("patient", registry.image("private/busybox:1"), imagePullSecrets=[{"name": "late"}]))
    tools.wait_until(lambda: waiting(node, "patient").get("reason") == "ImagePullBackOff", "back-off", 60, every=0.2)
    expected = f'Back-off pulling image "{registry.image("private/busybox:1")}"'
    assert waiting(node, "patient")["message"].startswith(expected)
    told(node, "patient", "BackOff", expected)
    told(node, "patient", "Failed", "Error: ImagePullBackOff")
    node.apply(secret("late", registry.login()))
    wait_ready(node, "patient")
    node.kubectl("delete", "pod", "-n", NAMESPACE, "patient", "--wait=true")


def test_an_image_that_is_not_there_and_one_that_may_not_be_pulled(node: Cluster, registry: Registry) -> None:
    node.apply(secret("mine", registry.login()))
    use = {"imagePullSecrets": [{"name": "mine"}]}
    missing, never = registry.image("private/nothing:1"), registry.image("private/never:1")
    node.apply(pod("missing", missing, **use), pod("never", never, "Never", **use), pod("broken", "Bad//Name", **use))

    def reason(name: str) -> str:
        return waiting(node, name).get("reason", "")

    tools.wait_until(lambda: reason("missing") in REFUSED, "missing", 60, every=0.2)
    told(node, "missing", "Failed", "not found")
    tools.wait_until(lambda: reason("never") == "ErrImageNeverPull", "never", 60, every=0.2)
    expected = f'Container image "{never}" is not present with pull policy of Never'
    assert waiting(node, "never")["message"] == expected
    tools.wait_until(lambda: reason("broken") == "InvalidImageName", "broken", 60, every=0.2)
    assert "Bad//Name" in waiting(node, "broken")["message"]
    node.kubectl("delete", "pod", "-n", NAMESPACE, "missing", "never", "broken", "--wait=true")
