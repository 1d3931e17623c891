"""`kubectl api-versions`."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.commands.api_resources import versions

COMMAND = Command(
    "api-versions", 'Print the supported API versions on the server, in the form of "group/version"', versions
)
