"""A probe that runs a command in the container: success is exit code 0."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import Container
from pybernetes.cri.errors import CRIError

from ..container.expansion import TooLong, expand_known
from ..runtime.exec_command import CommandFailed, CommandRunner, CommandTimedOut, run_in_container
from .outcome import Outcome, ProbeError, Verdict

MAX_OUTPUT: Final = 10 * 1024  # upstream's


async def exec_probe(
    runtime: CommandRunner, container: Container, container_id: str, command: list[str], within: int
) -> Outcome:
    """Run the command. Raises ProbeError if the runtime cannot."""
    # Only what the spec itself says: variables that come from elsewhere are empty here, as with upstream.
    known = {each.name or "": each.value or "" for each in container.env or ()}
    try:
        command = [expand_known(each, known) for each in command]
        output = await run_in_container(runtime, container_id, command, within)
    except CommandFailed as error:
        return Outcome(Verdict.FAILURE, _text(error.output))
    except CommandTimedOut as error:
        return Outcome(Verdict.FAILURE, str(error))
    except (CRIError, TooLong) as error:
        raise ProbeError(str(error)) from error
    return Outcome(Verdict.SUCCESS, _text(output))


def _text(output: bytes) -> str:
    return output[:MAX_OUTPUT].decode(errors="replace")
