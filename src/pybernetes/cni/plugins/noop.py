"""Does nothing and passes on what plugins before it did; for lists that need a plugin but no network.

For tests of runtimes it can also fail or answer something else (`debugBehavior`, in the network or in CNI_ARGS by the
path of a file, `DEBUG=FILE`), and it writes into the file `debugFile` how it was called.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import results
from ..errors import DECODING_FAILURE, CNIError
from ..fields import field
from ..results import Result
from ..skel import Call, Plugin


def add(call: Call) -> Result:
    """The previous result, or an empty one, or the one to report."""
    behavior = _behave(call)
    reported = field(behavior, "reportResult", {})
    if reported:
        return results.read(reported, call.version)
    return call.prev_result or {}


def _only_behave(call: Call) -> None:
    _behave(call)


def _behave(call: Call) -> dict[str, Any]:
    """Writes down how the plugin was called, and fails if it shall."""
    arguments = dict(pair.split("=", 1) for pair in call.args.split(";") if "=" in pair)
    path = arguments.get("DEBUG") or field(call.config, "debugFile", "")
    behavior = dict(field(call.config, "debugBehavior", {}))
    if path:
        behavior |= _read(Path(path))
        behavior["command"] = call.command
        behavior["cmdArgs"] = {
            "ContainerID": call.container_id,
            "Netns": call.netns,
            "IfName": call.ifname,
            "Args": call.args,
            "StdinData": call.config,
        }
        Path(path).write_text(json.dumps(behavior))
    problem = field(behavior, "reportError", "")
    if problem:
        raise CNIError(problem, field(behavior, "reportErrorCode", 0) or 999)
    return behavior


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes() or b"{}")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CNIError(f"{path}: {error}", DECODING_FAILURE) from None
    if not isinstance(found, dict):
        raise CNIError(f"{path}: must be an object", DECODING_FAILURE)
    return found


PLUGIN = Plugin("noop", add, _only_behave, _only_behave, _only_behave, _only_behave)
