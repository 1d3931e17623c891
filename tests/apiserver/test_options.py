"""Flags of the API server: upstream's errors, warnings for flags without effect, errors for unsupported ones."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from apiserver.client import Client

import tools
from pybernetes.apiserver import options
from pybernetes.apiserver.admission import plugins
from pybernetes.apiserver.logs import JSONFormatter

UPSTREAM = (Path(__file__).parent / "upstream_flags.txt").read_text().split()
"""All flags of v1.36, but for --service-account-signing-endpoint, which is unknown here."""


def parse(*flags: str) -> None:
    options.parse(["--etcd-servers=memory://", *flags])


def test_every_flag_of_upstream_has_an_answer() -> None:
    known = options.flag_values(options.parse(["--etcd-servers=memory://"]))
    assert set(UPSTREAM) - set(known) == {"version"}  # which ends the program


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--goaway-chance=0.5", "--goaway-chance can not be less than 0 or greater than 0.02"),
        ("--goaway-chance=-1", "--goaway-chance can not be less than 0 or greater than 0.02"),
        ("--tls-curve-preferences=99", "curve preference 99 is not supported by the current Go version"),
        ("--tls-curve-preferences=0", "curve preference 0 is out of range (must be 1-65535)"),
        ("--tls-curve-preferences=23,23", "duplicate curve preference 23"),
        ("--feature-gates=Foo=true", "unrecognized feature gate: Foo"),
        ("--feature-gates=Foo", "missing bool value for Foo"),
        ("--feature-gates=wardle:Foo=true", "component not registered: wardle"),
        (
            "--feature-gates=kube:JobPodReplacementPolicy=false",
            "cannot set feature gate JobPodReplacementPolicy to false, feature is locked to true",
        ),
        ("--feature-gates=AllAlpha=true", "cannot set feature gate AllAlpha to true: this server has it off, always"),
        (
            "--feature-gates=APIServerIdentity=x",
            'invalid value of APIServerIdentity=x, err: strconv.ParseBool: parsing "x": invalid syntax',
        ),
        ("--emulated-version=1.30", "emulation version 1.30 is not between [1.33, 1.36.0]"),
        ("--emulated-version=kube=1.35", "1.35 cannot be emulated"),
        ("--emulated-version=foo", 'could not parse "foo" as version'),
        ("--min-compatibility-version=1.37", "minCompatibilityVersion version 1.37 is not between [1.33, 1.36]"),
        (
            "--emulation-forward-compatible",
            "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same",
        ),
        (
            "--show-hidden-metrics-for-version=1.20",
            "metrics.showHiddenMetricsForVersion: Invalid value: \"1.20\": must be omitted or have the value '1.35'",
        ),
        ("--watch-cache-sizes=foo", "invalid value of watch cache size: foo"),
        ("--watch-cache-sizes=pods#x", "invalid size of watch cache size: pods#x"),
        ("--watch-cache-sizes=pods#-1", "watch cache size cannot be negative: pods#-1"),
        ("--storage-backend=etcd2", "--storage-backend invalid, allowed values: etcd3."),
        ("--storage-media-type=text/plain", '--storage-media-type "text/plain" invalid, allowed values: application/'),
        ("--kubernetes-service-node-port=70000", "--kubernetes-service-node-port 70000 must be between 0 and 65535"),
        ("--kubernetes-service-node-port=10", "kubernetes service node port range 30000-32767 doesn't contain 10"),
        ("--endpoint-reconciler-type=master-count", "unknown reconciler type: master-count"),
        ("--logging-format=yaml", 'format: Invalid value: "yaml": Unsupported log format'),
        ("--log-json-split-stream", "options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled"),
        ("--log-flush-frequency=-1s", 'flushFrequency: Invalid value: "-1s": Must be greater than zero'),
        ("--vmodule=foo", '"foo" does not have the pattern=N format'),
        (
            "--coordinated-leadership-retry-period=20s",
            "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period",
        ),
        (
            "--admission-control=Foo --enable-admission-plugins=LimitRanger",
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive; "
            'admission-control plugin "Foo" is unknown',
        ),
        (
            "--livez-grace-period=-1s --max-requests-inflight=-1 --shutdown-delay-duration=-1s",
            "--max-requests-inflight can not be negative value; --shutdown-delay-duration can not be negative value; "
            "--livez-grace-period can not be a negative value",
        ),
        (
            "--shutdown-watch-termination-grace-period=-1s",
            "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
        ),
        ("--storage-initialization-timeout=-1s", "--storage-initialization-timeout can not be negative value"),
        (
            "--oidc-username-claim=sub",
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* fl",
        ),
        (
            "--oidc-signing-algs=RS256",
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* fl",
        ),
        (
            "--oidc-issuer-url=",
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are",
        ),
        (
            f"--authentication-config={__file__} --oidc-username-claim=sub",
            "authentication-config file and oidc-* flags are mutually exclusive",
        ),
        ("--service-cluster-ip-range=foo", "service-cluster-ip-range[0] is not a valid cidr"),
        (
            "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24",
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/24,fd00::/112,10.1.0.0/24",
            "--service-cluster-ip-range must not contain more than two entries",
        ),
    ],
)
def test_what_upstream_complains_about(flags: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(*flags.split())
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "flag",
    [
        "--egress-selector-config-file=f",
        "--enable-logs-handler",
        "--debug-socket-path=s",
        "--etcd-prefix=/other",
        "--etcd-servers-overrides=/events#http://etcd:2379",
        "--max-connection-bytes-per-sec=1",
        "--peer-ca-file=f",
        "--shutdown-send-retry-after",
        "--allow-metric-labels=m,l=v",
    ],
)
def test_what_would_not_be_kept_to_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(flag)
    assert f"error: {flag.partition('=')[0]}: " in capsys.readouterr().err


def test_flags_without_effect_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    parse("--goaway-chance=0.01", "--http2-max-streams-per-connection=9", "--watch-cache=false")
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "pyb apiserver: --goaway-chance has no effect: HTTP/1.1 alone is served",
        "pyb apiserver: --http2-max-streams-per-connection has no effect: HTTP/1.1 alone is served",
        "pyb apiserver: --watch-cache has no effect: everything is served from the cache",
    ]


def test_what_is_so_anyway_may_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    parse("--etcd-prefix=/registry", "--emulated-version=kube=1.36", "--enable-logs-handler=false", "--profiling")
    parse("--feature-gates=APIServerIdentity=true,AllAlpha=false", "--feature-gates=kube:WatchList=true")
    assert capsys.readouterr().err == ""


def test_the_old_flag_says_which_plugins_there_are_and_no_others() -> None:
    found = options.parse(["--etcd-servers=memory://", "--admission-control=ResourceQuota,LimitRanger"])
    assert plugins.selected([], [], found.admission_control) == ["LimitRanger", "ResourceQuota"]


def test_log_lines_as_json() -> None:
    record = logging.LogRecord("n", logging.WARNING, "/a/server.py", 7, "it is %s", ("so",), None)
    line = json.loads(JSONFormatter().format(record))
    assert line == {"ts": record.created * 1000, "caller": "server.py:7", "msg": "it is so", "v": 0}


def test_what_is_served_of_the_flags(tmp_path: Path) -> None:
    flags = [
        "--kubernetes-service-node-port=30443",
        "--enable-garbage-collector=false",
        "--disabled-metrics=apiserver_request_total,apiserver_storage_objects",
        "--permit-port-sharing",
        "--logging-format=json",
        "--v=2",
    ]
    with tools.api_server(tmp_path, *flags) as server:
        client = Client(server)
        spec = client.get("/api/v1/namespaces/default/services/kubernetes").json["spec"]
        assert (spec["type"], spec["ports"][0]["nodePort"]) == ("NodePort", 30443)
        metrics = client.get("/metrics").body.decode()
        assert "apiserver_request_total" not in metrics
        assert "apiserver_storage_objects" not in metrics
        assert "apiserver_request_duration_seconds" in metrics
        path = "/api/v1/namespaces/default/configmaps"
        assert client.post(path, {"metadata": {"name": "a"}}).status == 201
        assert client.delete(f"{path}/a?propagationPolicy=Foreground").json["status"] == "Success"
        assert client.get(f"{path}/a").status == 404
        lines = (tmp_path / "apiserver.log").read_text().splitlines()
        assert any("serving securely" in json.loads(line)["msg"] for line in lines)
