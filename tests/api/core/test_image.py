"""Which tag an image is pulled by."""

from __future__ import annotations

import pytest

from pybernetes.api.core.image import default_pull_policy, image_tag

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:1.27", "1.27"),
        ("localhost:5000/x", "latest"),
        ("localhost:5000/x:y", "y"),
        ("registry.example.com/a/b/c:v1", "v1"),
        (f"nginx@{DIGEST}", ""),
        (f"nginx:latest@{DIGEST}", "latest"),
        ("[::1]:5000/x", "latest"),
        ("UPPER", None),
        ("Foo/bar", "latest"),  # a host may have capitals
        ("foo/Bar", None),
        ("a" * 64, None),  # would be an image's id
        ("https://x/y", None),
        ("nginx@sha256:12", None),
        ("", None),
    ],
)
def test_the_tag_of_an_image(image: str, tag: str | None) -> None:
    assert image_tag(image) == tag


def test_only_the_moving_tag_is_always_pulled() -> None:
    assert [default_pull_policy(image) for image in ("a", "a:latest", "a:1", "A", None)] == [
        "Always",
        "Always",
        "IfNotPresent",
        "IfNotPresent",
        "IfNotPresent",
    ]
