"""What a test cluster is like: unknown options and impossible values are named before anything is started."""

from __future__ import annotations

import pytest

from pybernetes.testing.options import OptionError, parse


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"node": 3}, "unknown option 'node'; there are api_server_flags"),
        ({"nodes": -1}, "nodes: -1 is not between 0 and 5000"),
        ({"nodes": 5001}, "nodes: 5001 is not between 0 and 5000"),
        ({"nodes": "many"}, "Expected int, got str - at nodes"),
        ({"runtime": "docker"}, "runtime: 'docker' is none of simulated, embedded, containerd, auto"),
        ({"store": "redis", "runtime": "embedded"}, "store: 'redis' is none of memory, sqlite"),
        ({"store": "sqlite"}, "store: a cluster of simulated nodes is in memory, not in sqlite"),
        ({"scheduler_config": "/nowhere"}, "scheduler_config: there is no file '/nowhere'"),
        ({"runtime": "embedded", "autojump": True}, "autojump: only clusters with runtime='simulated' have it"),
        ({"runtime": "embedded", "api_server_flags": "--v=4"}, "api_server_flags: only clusters with"),
        ({"features": {"A": "maybe"}}, "Expected bool, got str - at features"),
        ({"features": "A b=true"}, "features: 'A b' is no name of a feature gate"),
        ({"manifests": ["/nowhere.yaml"]}, "manifests: there is no '/nowhere.yaml'"),
    ],
)
def test_a_bad_option_is_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        parse(values)
    assert message in str(error.value)


def test_options_of_an_ini_file_are_text() -> None:
    options = parse(
        {
            "nodes": "3",
            "autojump": "true",
            "features": "A=true,B=false",
            "api_server_flags": "--v=4 --enable-aggregator-routing",
        }
    )
    assert options.nodes == 3
    assert options.autojump
    assert options.features == {"A": True, "B": False}
    assert options.api_server_flags == ("--v=4", "--enable-aggregator-routing")
