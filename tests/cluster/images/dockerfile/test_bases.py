"""Images of FROM and COPY --from: those that the cluster keeps, and those of a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.images.dockerfile.bench import Bench
from cri.embedded.images.registries import FakeRegistry, layer

from pybernetes.cluster.errors import ClusterError


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry().serving() as serving:
        yield serving


def test_an_image_that_is_not_here_is_pulled_once_and_not_given_to_nodes(bench: Bench, registry: FakeRegistry) -> None:
    digest = registry.add("1", layer(one="1"), layer(two="2"), config={"Env": ["A=b"], "Cmd": ["x"]})
    name = f"{registry.host}/a/b"
    made = bench.build(f"FROM {name}:1\nENV C=d")
    assert f"pulling {name}:1" in made.said
    assert (made.config["Env"], made.config["Cmd"]) == (["A=b", "C=d"], ["x"])
    assert [sorted(each) for each in made.layers] == [["one"], ["two"]]
    assert not list((bench.data / "images").glob("127*"))
    asked = len(registry.requests)
    assert "pulling" not in bench.build(f"FROM {name}:1\nENV C=e").said
    assert len(registry.requests) == asked
    assert "pulling" in bench.build(f"FROM {name}:1\nENV C=e", "--pull").said
    by_digest = bench.build(f"FROM {name}:whatever@{digest}\nCOPY --from={name}:1 /one /three")
    assert by_digest.contents["three"] == b"1"
    with pytest.raises(ClusterError, match=r"Dockerfile:1: FROM: failed to pull .*:2.*not found"):
        bench.run(f"FROM {name}:2")


def test_what_was_built_can_be_built_upon(bench: Bench) -> None:
    bench.put("a", "1")
    bench.run("FROM busybox\nCOPY a /a\nENV A=1", "-t", "base:1")
    made = bench.build("FROM base:1\nRUN cat /a > /b")
    assert made.contents["b"] == b"1"
    assert "A=1" in made.config["Env"]
    assert len(made.layers) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": {"a": 1}},
        {"config": {"Labels": ["x"]}},
        {"config": {"OnBuild": {"a": 1}}},
        {"config": {"OnBuild": [5]}},
        {"config": {"Shell": "sh"}},
        {"config": {"Env": "x"}},
        {"config": []},
        {"config": {"ExposedPorts": 5}},
    ],
)
def test_a_base_of_another_shape_is_reported(bench: Bench, registry: FakeRegistry, wrong: dict[str, Any]) -> None:
    content = layer(one="1")
    registry.add("1", content)
    manifest = json.loads(registry.manifests["1"][1])
    config = json.loads(registry.blobs[manifest["config"]["digest"]]) | wrong
    manifest["config"] = registry.blob(manifest["config"]["mediaType"], json.dumps(config).encode())
    registry.manifest("1", manifest["mediaType"], manifest)
    text = f"FROM {registry.host}/a/b:1\nLABEL a=b\nEXPOSE 1\nENV A=b"
    if wrong == {"config": []}:
        bench.run(text)  # as good as none
        return
    with pytest.raises(ClusterError, match=r"Dockerfile:1: "):
        bench.run(text)
