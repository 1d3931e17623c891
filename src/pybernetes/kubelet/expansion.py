"""Replaces `$(NAME)` by the value of a variable, in commands, arguments, values of variables and subPathExpr.

`$$` is a dollar sign, so `$$(NAME)` is never replaced; what is no reference stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pybernetes.api.core.v1 import EnvVar

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, mapping: Callable[[str], str]) -> str:
    """The text with each reference replaced by what `mapping` says for its name."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else mapping(match[1]), text)


def values(variables: Mapping[str, str]) -> Callable[[str], str]:
    """For `expand`: the value of a variable; a reference to one that does not exist stays."""
    return lambda name: variables.get(name, f"$({name})")


def expand_static(command: Sequence[str], env: Sequence[EnvVar]) -> list[str]:
    """A command with the variables of a container's spec alone: those that come from elsewhere are empty."""
    mapping = values({each.name or "": each.value or "" for each in env})
    return [expand(each, mapping) for each in command]
