"""A coverage-guided fuzzer on the patch code: JSON patch, merge patch, strategic merge patch and server-side apply.

python tests/fuzz/atheris_patches.py -max_total_time=300
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["pybernetes.api", "pybernetes.apiserver"]):
    from fuzz import guided, test_patches
    from fuzz.journey import STORED

    from pybernetes.api import managedfields
    from pybernetes.api.errors import BadRequest
    from pybernetes.api.gocompat import gojson

RESOURCES = [each for each in STORED if each.kind in ("Pod", "Service")]
LIVE = [test_patches.live(each) for each in RESOURCES]
KINDS = ("json-patch", "merge-patch", "strategic-merge-patch")


def one_input(data: bytes) -> None:
    """The first byte chooses the kind of object and of patch, the rest is the patch."""
    if not data:
        return
    index, form = data[0] % len(RESOURCES), (data[0] >> 4) % 4
    resource, live = RESOURCES[index], LIVE[index]
    if form < len(KINDS):
        return test_patches.try_patch(resource, live, KINDS[form], data[1:])
    test_patches.outcome(lambda: apply(index, data[1:]))


def apply(index: int, body: bytes) -> None:
    """A server-side apply of a body, where it is an object."""
    try:
        config = gojson.plain(gojson.loads(body))
    except gojson.SyntaxProblem as problem:
        raise BadRequest(str(problem)) from None
    if isinstance(config, dict):
        resource = RESOURCES[index]
        managedfields.apply(
            json.loads(json.dumps(deepcopy(LIVE[index]))),
            {**config, "kind": resource.kind, "apiVersion": resource.api_version},
            node=managedfields.node_of(resource.type),
            manager="fuzz",
            api_version=resource.api_version,
            kind=resource.kind,
            now=test_patches.NOW,
        )


if __name__ == "__main__":
    operations = [{"op": "add", "path": "/metadata/labels/a", "value": "b"}, {"op": "test", "path": "/spec/x/0"}]
    changes = [{key: value for key, value in each.items() if key == "spec"} for each in LIVE]
    seeds = [b"\x00" + json.dumps(operations).encode()]
    seeds += [
        bytes([form << 4 | n]) + json.dumps(each).encode() for form in (1, 2, 3) for n, each in enumerate(changes)
    ]
    words = set().union(*(guided.names_of_fields(each.type) for each in RESOURCES))
    directives = {"$retainKeys", "$setElementOrder/ports", "$deleteFromPrimitiveList/finalizers", "replace", "delete"}
    guided.fuzz(one_input, seeds, words | directives | {"add", "remove", "move", "copy", "test", "/-", "~1"})
