"""What names of images stand for, and which tag is pulled."""

from __future__ import annotations

import re

import pytest

from pybernetes.api.core.image import default_pull_policy, image_tag, parse_reference

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


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("docker.io/nginx:1", "docker.io/library/nginx:1"),
        ("index.docker.io/nginx", "docker.io/library/nginx:latest"),
        ("index.docker.io/team/app", "docker.io/team/app:latest"),
        ("team/app", "docker.io/team/app:latest"),
        ("localhost/app:2", "localhost/app:2"),
        ("Registry/app", "Registry/app:latest"),
        ("[::1]:5000/x", "[::1]:5000/x:latest"),
        (f"nginx:1@{DIGEST}", f"docker.io/library/nginx@{DIGEST}"),
        ("a_b__c/d---e", "docker.io/a_b__c/d---e:latest"),
        ("quay.io/" + "a" * 255, "quay.io/" + "a" * 255 + ":latest"),
    ],
)
def test_names_in_full(image: str, full: str) -> None:
    assert parse_reference(image).full == full
    assert parse_reference(full).full == full


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("", "invalid reference format"),
        ("UPPER", "invalid reference format: repository name (library/UPPER) must be lowercase"),
        ("foo/Bar:1", "invalid reference format: repository name (foo/Bar) must be lowercase"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
        ("quay.io/" + "a" * 256, "repository name must not be more than 255 characters"),
        ("a..b", "invalid reference format"),
        ("a:" + "x" * 129, "invalid reference format"),
        ("a@md5:" + "0" * 32, "unsupported digest algorithm"),
        ("a@sha256:" + "0" * 63, "invalid checksum digest length"),
        ("a@sha256:" + "A" * 64, "invalid checksum digest format"),
    ],
)
def test_invalid_names_get_upstreams_error(image: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        parse_reference(image)


def test_only_the_moving_tag_is_always_pulled() -> None:
    assert [default_pull_policy(image) for image in ("a", "a:latest", "a:1", "A", None)] == [
        "Always",
        "Always",
        "IfNotPresent",
        "IfNotPresent",
        "IfNotPresent",
    ]
