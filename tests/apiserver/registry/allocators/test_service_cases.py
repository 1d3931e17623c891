"""Services get addresses and ports, change and are refused as with an upstream server.

Which address or port comes out is chance; the cases compare everything else. After each case the pools are as before.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from apiserver.registry.allocators.servers import Server, server
from cases import UID, Case, load, normalized, sent

from pybernetes.api.errors import APIError, Invalid

_ADDRESS = re.compile(r"10\.0\.0\.\d+|fd00:10::[0-9a-f]+", re.ASCII)
_PORT = re.compile(r"\b3[0-2]\d{3}\b", re.ASCII)


def masked(value: Any) -> Any:
    """Without what was drawn."""
    return json.loads(_PORT.sub("30000", _ADDRESS.sub("<address>", json.dumps(value))))


async def outcome(api: Server, case: Case) -> dict[str, Any]:
    """What becomes of a case, in the form that is recorded."""
    try:
        if case.stored is None:
            answer = await api.create(sent(case, case.base), dry_run=True)
        else:
            stored = await api.create(case.stored)
            action = case.spec["do"]
            subresource = "" if action == "update" else action
            answer = await api.update(sent(case, stored), dry_run=True, subresource=subresource)
    except Invalid as error:
        return {"errors": [f"{cause['field']}: {cause['message']}" for cause in (error.details or {})["causes"]]}
    except APIError as error:
        return {"refused": f"{error.code} {error.message}"}
    result: dict[str, Any] = {"result": normalized(answer, UID)}
    return result | ({"warnings": api.warnings} if api.warnings else {})


@pytest.mark.parametrize("case", list(load(Path(__file__).parent / "cases")), ids=str)
async def test_a_service_fares_as_with_upstream(case: Case) -> None:
    assert case.expected, "not recorded: see tools/record_cases.py"
    async with server() as api:
        assert masked(await outcome(api, case)) == masked(case.expected)
        if case.stored is not None:
            await api.delete(case.stored["metadata"]["name"])
        assert (api.addresses(), await api.ports()) == (set(), set())
