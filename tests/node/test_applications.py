"""Applications as users have them, on two nodes: by Service names, by Ingresses, by Helm, while they are updated."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster
from node.machine import BUSYBOX
from node.pods import Namespace, container
from node.runtimes import only

import tools
from pybernetes import pki

pytestmark = only("embedded")
CHART = Path(__file__).parent / "chart"
STOP = "trap 'exit 0' TERM;"


class Ports:
    """Where the cluster's Ingresses are served."""

    http, https = 0, 0


@pytest.fixture(scope="module")
def pair(runtime_name: str) -> Iterator[Cluster]:
    """Two nodes, with Ingresses at ports that no other cluster has."""
    Ports.http, Ports.https = tools.free_port(), tools.free_port()
    flags = [f"--ingress-http-port={Ports.http}", f"--ingress-https-port={Ports.https}"]
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        Cluster(Path(folder), f"a{os.getpid()}", *flags, runtime=runtime_name, nodes=2) as cluster,
    ):
        yield cluster


def namespace(cluster: Cluster, name: str) -> Namespace:
    made = Namespace(cluster, name)
    tools.wait_until(
        lambda: made.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"), "an account", 60.0
    )
    return made


def deployment(name: str, replicas: int, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": 1, "containers": list(containers), **spec.pop("pod", {})}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name: str, port: int, target: int, **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"name": "main", "port": port, "targetPort": target}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def ingress(name: str, host: str, to: str, secret: str = "", annotations: dict[str, str] | None = None) -> Any:
    backend = {"service": {"name": to, "port": {"name": "main"}}}
    spec: dict[str, Any] = {
        "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    }
    if secret:
        spec["tls"] = [{"hosts": [host], "secretName": secret}]
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def ready_when(path: str, port: int) -> dict[str, Any]:
    return {"readinessProbe": {"httpGet": {"path": path, "port": port}, "periodSeconds": 1}}


def image(cluster: Cluster, program: str, package: str, *command: str) -> str:
    """An image of a Debian package's files; skips the test where the program is not installed."""
    if shutil.which(program, path=f"/usr/sbin:{os.environ['PATH']}") is None:
        pytest.skip(f"{program} is not installed")
    said = cluster.pyb_image("from-package", package, *command, timeout=250.0)  # Postgres brings 125 MB
    return str(re.search(r"Image ([^\s,]+)", said)[1])  # type: ignore[index]


def curl(host: str, path: str = "/", *flags: str, port: int = 0) -> str:
    """What curl says on this machine; empty if it fails."""
    port = port or Ports.https
    scheme = "https" if port == Ports.https else "http"
    command = ["curl", "-sS", "--max-time", "10", "--resolve", f"{host}:{port}:127.0.0.1", *flags]
    done = subprocess.run([*command, f"{scheme}://{host}:{port}{path}"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def metrics(cluster: Cluster) -> str:
    """What the Ingress controller counts, as its administrator sees it."""
    spec = next(each for each in cluster.layout.specs() if each["name"] == "ingress")
    port = next(word.partition("=")[2] for word in spec["argv"] if word.startswith("--secure-port="))  # type: ignore[attr-defined]
    pki = cluster.layout.pki
    command = ["curl", "-sS", "--max-time", "10", "--cacert", f"{pki}/ca.crt", "--cert", f"{pki}/admin.crt"]
    url = f"https://127.0.0.1:{port}/metrics"
    return subprocess.run([*command, "--key", f"{pki}/admin.key", url], capture_output=True, text=True).stdout


GUESTBOOK = r"""mkdir -p /tmp/cgi-bin; cat > /tmp/cgi-bin/guests <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
if [ -n "$QUERY_STRING" ]; then
  printf 'RPUSH guests %s\r\nQUIT\r\n' "$QUERY_STRING" | nc redis-leader 6379
else
  printf 'LRANGE guests 0 -1\r\nQUIT\r\n' | nc redis-follower 6379
fi
END
chmod +x /tmp/cgi-bin/guests; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"""
NGINX = """daemon off; events {} error_log /dev/stderr; pid /tmp/nginx.pid;
http { access_log off; client_body_temp_path /tmp; proxy_temp_path /tmp; fastcgi_temp_path /tmp; uwsgi_temp_path /tmp;
scgi_temp_path /tmp; server { listen 8000; location / { proxy_pass http://guestbook:8080/; proxy_http_version 1.0; } } }
"""


def test_a_guestbook_of_redis_and_nginx_by_service_names_behind_an_ingress_with_tls(pair: Cluster) -> None:
    redis, nginx = image(pair, "redis-server", "redis-server"), image(pair, "nginx", "nginx")
    space = namespace(pair, "guestbook")
    server = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", "/tmp"]
    leader = {"name": "redis", "image": redis, "command": server}
    follower = {**leader, "command": [*server, "--replicaof", "redis-leader", "6379"]}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nginx"}, "data": {"nginx.conf": NGINX}}
    front = {
        "name": "nginx",
        "image": nginx,
        "command": ["nginx", "-c", "/conf/nginx.conf"],
        "volumeMounts": [{"name": "conf", "mountPath": "/conf"}],
        **ready_when("/cgi-bin/guests", 8000),
    }
    authority = pki.create_authority("guests")
    pair_of_keys = pki.issue_server(authority, "guests.example", ["guests.example"])
    data = {"tls.crt": pair_of_keys.certificate_pem, "tls.key": pair_of_keys.key_pem}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "guests"},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    space.apply(
        *(service("redis-leader", 6379, 6379), service("redis-follower", 6379, 6379)),
        *(service("guestbook", 8080, 8080), service("front", 80, 8000), config, secret),
        deployment("redis-leader", 1, leader),
        deployment("redis-follower", 2, follower),
        deployment("guestbook", 2, container(GUESTBOOK)),
        deployment("front", 1, front, pod={"volumes": [{"name": "conf", "configMap": {"name": "nginx"}}]}),
        ingress("guests", "guests.example", "front", "guests"),
    )
    authority_file = pair.folder / "authority.pem"
    authority_file.write_bytes(authority.certificate_pem)
    trust = ("--cacert", str(authority_file))
    tools.wait_until(lambda: "+OK" in curl("guests.example", "/cgi-bin/guests", *trust), "it is served by TLS", 120)
    for name in ("ada", "grace"):
        assert "+OK" in curl("guests.example", f"/cgi-bin/guests?{name}", *trust)

    def both() -> bool:
        said = curl("guests.example", "/cgi-bin/guests", *trust)
        return "ada" in said and "grace" in said

    tools.wait_until(both, "a follower has the leader's data", 60)
    location = curl("guests.example", "/x", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", port=Ports.http)
    assert location == f"308 https://guests.example:{Ports.https}/x"
    gateway = pair.machine().gateway
    assert space.kubectl("get", "ingress", "guests", "--no-headers").split()[:5] == [
        *("guests", "pybernetes", "guests.example", gateway, "80,")
    ]
    pair.kubectl("delete", "namespace", "guestbook", "--wait=false")


def web(version: str) -> dict[str, Any]:
    script = f"echo {version} > /tmp/index.html; {STOP} httpd -f -p 8080 -h /tmp & wait"
    return deployment(
        "web",
        3,
        {**container(script), **ready_when("/", 8080)},
        strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        minReadySeconds=1,
    )


class Load:
    """Clients that ask again and again, and note what they are answered."""

    def __init__(self, host: str, clients: int) -> None:
        self.answers: dict[str, int] = {}
        self.failures: list[str] = []
        self._host, self._over = host, threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Load:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join(30)

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", Ports.http, timeout=20)
        while not self._over.is_set():
            try:
                connection.request("GET", "/", headers={"Host": self._host})
                answer = connection.getresponse()
                body = answer.read().decode().strip()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
                time.sleep(0.05)
                continue
            if answer.status != 200:
                self.failures.append(f"{answer.status} {body}")
            self.answers[body] = self.answers.get(body, 0) + 1
            time.sleep(0.01)
        connection.close()


def test_no_request_fails_while_a_deployment_is_updated(pair: Cluster) -> None:
    space = namespace(pair, "rolling")
    space.apply(web("one"), service("web", 80, 8080), ingress("web", "web.example", "web"))
    space.kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    tools.wait_until(lambda: curl("web.example", port=Ports.http) == "one\n", "it is served", 60)
    with Load("web.example", 3) as load:
        pair.kubectl("-n", "rolling", "apply", "-f", "-", stdin=json.dumps(web("two")))
        space.kubectl("rollout", "status", "deployment/web", "--timeout=110s")
        tools.wait_until(lambda: len(load.answers) > 1, "the new version is served", 60)
        space.kubectl("rollout", "restart", "deployment/web")
        space.kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    assert load.failures == []
    counted = re.search(r'requests_total{ingress="rolling/web",status="2xx"} (\d+)', metrics(pair))
    assert counted is not None
    assert int(counted[1]) >= sum(load.answers.values())
    assert load.answers.keys() == {"one", "two"}
    pair.kubectl("delete", "namespace", "rolling", "--wait=false")


def test_a_chart_is_installed_tested_upgraded_and_removed_by_helm(pair: Cluster) -> None:
    program = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("helm is not installed: it has a wheel for x86_64 only")
    pair.kubectl("create", "namespace", "charts")

    def helm(*words: str) -> str:
        command = [str(program), "-n", "charts", *words]
        done = subprocess.run(command, env=pair.environment, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    helm("install", "hi", str(CHART), "--wait", "--timeout=110s", f"--set=image={BUSYBOX}")
    assert "Phase:          Succeeded" in helm("test", "hi", "--timeout=110s")
    tools.wait_until(lambda: curl("hi.example", port=Ports.http) == "hello", "its Ingress is served", 60)
    helm("upgrade", "hi", str(CHART), "--wait", "--timeout=110s", "--set=greeting=bye", f"--set=image={BUSYBOX}")
    tools.wait_until(lambda: curl("hi.example", port=Ports.http) == "bye", "the new page is served", 60)
    helm("uninstall", "hi", "--wait", "--timeout=110s")
    assert "hi" not in pair.kubectl("-n", "charts", "get", "services,deployments,ingresses", "-o", "name")


POSTGRES = """set -e; mkdir -p /data/run; cd /data
bin=/usr/lib/postgresql/15/bin
ordinal=${HOSTNAME##*-}
if [ ! -f /data/db/PG_VERSION ]; then
  if [ "$ordinal" = 0 ]; then
    $bin/initdb -D /data/db --auth=trust -U postgres >/dev/null
    echo 'host all all all trust' >> /data/db/pg_hba.conf
    echo 'host replication all all trust' >> /data/db/pg_hba.conf
  else
    until $bin/pg_basebackup -h db-0.db -U postgres -D /data/db -R; do sleep 1; done
    chmod 700 /data/db
  fi
fi
exec $bin/postgres -D /data/db -c listen_addresses='*' -c unix_socket_directories=/data/run"""


@pytest.mark.soak
def test_a_postgres_statefulset_replicates_by_headless_names(pair: Cluster) -> None:
    bin_folder = "/usr/lib/postgresql/15/bin"
    if not os.path.isdir(bin_folder):
        pytest.skip("postgresql-15 is not installed")
    postgres = image(pair, "pg_ctlcluster", "postgresql-15", "--command", f"{bin_folder}/postgres")
    space = namespace(pair, "postgres")
    probe = {"exec": {"command": [f"{bin_folder}/pg_isready", "-h", "127.0.0.1", "-U", "postgres"]}}
    main = {
        "name": "postgres",
        "image": postgres,
        "command": ["sh", "-c", POSTGRES],
        "readinessProbe": {**probe, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "users", "mountPath": "/etc/passwd", "subPath": "passwd"},
        ],
    }
    labels = {"app": "db"}
    pod = {
        "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
        "terminationGracePeriodSeconds": 10,
        "containers": [main],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "users", "configMap": {"name": "users"}}],
    }
    users = {"passwd": "root:x:0:0::/:/bin/sh\npostgres:x:1000:1000::/data:/bin/sh\n"}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    space.apply(
        service("db", 5432, 5432, clusterIP="None"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "users"}, "data": users},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {**spec, "template": template},
        },
    )
    space.kubectl("rollout", "status", "statefulset/db", "--timeout=110s")

    def sql(pod: str, host: str, statement: str, check: bool = True) -> str:
        words = [f"{bin_folder}/psql", "-h", host, "-U", "postgres", "-Atc", statement]
        return space.kubectl("exec", pod, "--", *words, check=check).strip()

    sql("db-1", "db-0.db", "CREATE TABLE guests (name text); INSERT INTO guests VALUES ('ada')")
    tools.wait_until(
        lambda: sql("db-0", "db-1.db.postgres.svc.cluster.local", "SELECT name FROM guests", check=False) == "ada",
        "the replica has it",
        60,
    )
    assert sql("db-0", "db-1.db", "SELECT pg_is_in_recovery()") == "t"
    with contextlib.suppress(AssertionError):
        pair.kubectl("delete", "namespace", "postgres", "--wait=false")
