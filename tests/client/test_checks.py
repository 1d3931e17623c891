"""Checks by name, their output and their metrics."""

from __future__ import annotations

import pytest

from pybernetes.client.checks import Checks


@pytest.mark.parametrize(
    ("path", "query", "status", "text"),
    [
        ("/livez", "", 200, "ok"),
        ("/livez", "verbose", 200, "[+]ping ok\nlivez check passed\n"),
        ("/livez/ping", "verbose", 200, "ok"),
        ("/readyz", "", 500, "[+]ping ok\n[-]work failed: reason withheld\nreadyz check failed\n"),
        ("/readyz", "exclude=work", 200, "ok"),
        ("/readyz", "exclude=work&verbose", 200, "[+]ping ok\n[+]work excluded: ok\nreadyz check passed\n"),
        ("/readyz/work", "", 500, "internal server error: it is broken\n"),
        (
            "/livez",
            "verbose&exclude=b,a",
            200,
            '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "a", "b"\nlivez check passed\n',
        ),
    ],
)
def test_checks_are_reported_as_upstream_tells_them(path: str, query: str, status: int, text: str) -> None:
    checks = Checks({"livez": {"ping": lambda: True}, "readyz": {"ping": lambda: "", "work": lambda: "it is broken"}})
    assert checks.answer(path, query) == (status, text)


@pytest.mark.parametrize("path", ["/healthz", "/livez/nothing", "/", "/metrics"])
def test_what_is_no_check_is_left_to_others(path: str) -> None:
    assert Checks({"livez": {"ping": lambda: True}}).answer(path) is None


def test_only_a_whole_path_is_counted() -> None:
    well = True
    checks = Checks({"livez": {"work": lambda: well}})
    checks.answer("/livez")
    checks.answer("/livez/work")
    well = False
    checks.answer("/livez")
    lines = [line for line in checks.slis().decode().splitlines() if not line.startswith("#")]
    assert lines == [
        'kubernetes_healthcheck{name="work",type="livez"} 0',
        'kubernetes_healthchecks_total{name="work",status="success",type="livez"} 1',
        'kubernetes_healthchecks_total{name="work",status="error",type="livez"} 1',
    ]
