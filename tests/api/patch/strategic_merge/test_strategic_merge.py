"""Every file in `cases/` is one patch: what it is for, the kind, the object before, the patch, and what comes of it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from pybernetes.api import scheme
from pybernetes.api.errors import APIError
from pybernetes.api.patch.strategic_merge import strategic_merge

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_patch(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    api_version, kind = case["kind"].split()
    cls = scheme.type_for(api_version, kind)
    assert cls is not None
    live, patch = deepcopy(case["live"]), deepcopy(case["patch"])
    if "error" in case:
        with pytest.raises(APIError) as caught:
            strategic_merge(live, patch, cls)
        assert {key: caught.value.status().get(key, "") for key in case["error"]} == case["error"]
    else:
        assert strategic_merge(live, patch, cls) == case["expected"]
    assert (live, patch) == (case["live"], case["patch"]), "the inputs were changed"


def test_order_of_keys_survives() -> None:
    cls = scheme.type_for("v1", "ConfigMap")
    assert cls is not None
    result = strategic_merge({"kind": "ConfigMap", "data": {"z": "1", "a": "2"}}, {"data": {"b": "3"}}, cls)
    assert list(result["data"]) == ["z", "a", "b"]
