"""Where a plain process finds the paths of its container."""

from __future__ import annotations

import pytest

from pybernetes.cri.embedded.plain import translated

MOUNTS = [
    {"target": "/etc/config", "source": "/volumes/config"},
    {"target": "/etc/config/deep", "source": "/volumes/deep"},
    {"target": "/data", "source": "/volumes/data"},
]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/", "/root/"),
        ("/bin/sh", "/root/bin/sh"),
        ("/etc/config", "/volumes/config"),
        ("/etc/config/key", "/volumes/config/key"),
        ("/etc/config/deep/key", "/volumes/deep/key"),
        ("/etc/configuration", "/root/etc/configuration"),
        ("/data/../bin", "/root/bin"),
        ("/database", "/root/database"),
    ],
)
def test_a_path_is_in_a_volume_or_in_the_root(path: str, place: str) -> None:
    assert translated(path, "/root", MOUNTS) == place.replace("//", "/")
