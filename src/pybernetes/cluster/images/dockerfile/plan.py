"""The stages of a Dockerfile, and which one is wanted. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import words
from pybernetes.cluster.images.dockerfile.errors import BuildError, placed
from pybernetes.cluster.images.dockerfile.parsing import Dockerfile, Instruction
from pybernetes.cluster.images.dockerfile.stage import argument_values


@dataclass
class Planned:
    """A stage as it is written."""

    index: int
    image: str
    """Its base: an image, an earlier stage, or `scratch`."""
    name: str
    begin: Instruction
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """All stages, and the arguments that were said before the first."""

    file: str
    stages: list[Planned]
    arguments: dict[str, str]

    def stage(self, name: str, before: int | None = None) -> Planned | None:
        """The stage of a name or number, among those before another."""
        known = self.stages[:before]
        named = next((each for each in reversed(known) if each.name and each.name == name.lower()), None)
        if named is None and name.isdecimal() and int(name) < len(known):
            return known[int(name)]
        return named

    def target(self, name: str) -> Planned:
        """The stage that is wanted: the last one if no name is given."""
        found = self.stage(name) if name else self.stages[-1]
        if found is None:
            known = ", ".join(each.name for each in self.stages if each.name) or "none has a name"
            raise BuildError(f"{self.file} has no stage {name!r}; its stages: {known}")
        return found


def plan(dockerfile: Dockerfile, given: Mapping[str, str]) -> Plan:
    """Divides the instructions into stages; `given` are the arguments of --build-arg. Raises BuildError."""
    stages: list[Planned] = []
    outer = platform_arguments()

    def expand(text: str) -> str:
        return words.expand(text, outer, dockerfile.escape)

    for each in dockerfile.instructions:
        try:
            if each.keyword == "FROM":
                stages.append(_from(each, len(stages), outer, dockerfile.escape, [one.name for one in stages]))
            elif stages:
                stages[-1].instructions.append(each)
            else:
                outer.update(argument_values(each.text, given, {}, expand, dockerfile.escape))
        except ValueError as error:
            raise placed(dockerfile.name, each.line, each.keyword, error) from None
    return Plan(dockerfile.name, stages, outer)


def unused(dockerfile: Dockerfile, given: Mapping[str, str], predefined: tuple[str, ...]) -> list[str]:
    """The arguments that were given, and that nothing asks for."""
    asked = {
        word.partition("=")[0]
        for each in dockerfile.instructions
        if each.keyword == "ARG"
        for word in words.split(each.text, dockerfile.escape)
    }
    return [name for name in given if name not in asked and name not in predefined]


def platform_arguments() -> dict[str, str]:
    """The platform's arguments; images are made for this one only."""
    architecture = oci.this_architecture()
    found: dict[str, str] = {}
    for prefix in ("BUILD", "TARGET"):
        found |= {
            f"{prefix}PLATFORM": f"linux/{architecture}",
            f"{prefix}OS": "linux",
            f"{prefix}ARCH": architecture,
            f"{prefix}VARIANT": "",
        }
    return found


def _from(instruction: Instruction, index: int, variables: Mapping[str, str], escape: str, taken: list[str]) -> Planned:
    parts = instruction.text.split()
    if len(parts) not in (1, 3) or (len(parts) == 3 and parts[1].upper() != "AS"):
        raise ValueError("wants IMAGE, or IMAGE AS NAME")
    image = words.expand(parts[0], variables, escape)
    if not image:
        raise ValueError(f"{parts[0]!r} is empty: an ARG before the first FROM, or --build-arg, must say it")
    name = parts[2].lower() if len(parts) == 3 else ""
    if name and not re.fullmatch(r"[a-z][a-z0-9_.-]*", name):
        raise ValueError(f"{parts[2]!r} is no name of a stage: letters, digits, '_', '.' and '-', a letter first")
    if name and (name in taken or name == "scratch"):
        raise ValueError(f"the name {parts[2]!r} is taken")
    wanted = words.expand(instruction.flag("platform"), variables, escape)
    here = f"linux/{oci.this_architecture()}"
    if wanted and wanted.lower() not in (
        here,
        "linux",
        oci.this_architecture(),
        f"{here}/v8" if "arm64" in here else here,
    ):
        raise ValueError(f"--platform={wanted}: images are made for this machine's, {here}")
    return Planned(index, image, name, instruction)
