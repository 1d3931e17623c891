"""Builds an image: carries out the stages of a Dockerfile that the wanted one needs, step by step.

Everything wrong is a BuildError that names file, line and instruction.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import copy_step, ignoring, parsing, run_step, sources
from pybernetes.cluster.images.dockerfile import stage as stages
from pybernetes.cluster.images.dockerfile.bases import Bases
from pybernetes.cluster.images.dockerfile.errors import BuildError, placed
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cluster.images.dockerfile.plan import Plan, Planned, plan, unused
from pybernetes.cluster.images.dockerfile.stage import Layer, Stage
from pybernetes.cluster.images.dockerfile.step import Step, key_of
from pybernetes.cluster.layout import Layout
from pybernetes.cri.embedded import once


@dataclass(frozen=True)
class Request:
    """A build: the context, the Dockerfile's name and content, and the command's flags."""

    context: Path
    file: str
    content: bytes
    ignored: Sequence[str] = ()
    """The lines of .dockerignore."""
    names: Sequence[str] = ()
    arguments: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    target: str = ""
    cache: bool = True
    pull: bool = False


@dataclass(frozen=True)
class Built:
    """An image, ready to be written."""

    document: dict[str, object]
    layers: list[oci.Blob]


class Builder:
    """One build. `say` gets lines for the user, `show` what commands of RUN write."""

    def __init__(
        self,
        layout: Layout,
        kept: Kept,
        request: Request,
        say: Callable[[str], object],
        show: Callable[[bytes], object],
    ) -> None:
        self._kept = kept
        self._request = request
        self._say = say
        self._show = show
        self._bases = Bases(layout, kept, say, pull=request.pull)
        self._done: dict[int, Stage] = {}
        self._dockerfile = parsing.parse(request.content, request.file)
        self._plan: Plan = plan(self._dockerfile, request.arguments)
        self._latest = _epoch(request.arguments)
        self._created = _time(self._latest or 0)
        try:
            self._ignored = ignoring.Patterns(list(request.ignored))
        except ValueError as error:
            raise BuildError(f".dockerignore: {error}") from None

    def build(self) -> Built:
        """Does it. Raises BuildError, and OSError for the disk's part."""
        for warning in self._dockerfile.warnings:
            self._say(f"warning: {warning}")
        for name in unused(self._dockerfile, self._request.arguments, stages.PREDEFINED):
            self._say(f"warning: --build-arg {name}: no ARG asks for it")
        with contextlib.ExitStack() as stack:
            root = os.open(self._request.context, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            self._context = sources.Tree(root, self._ignored, keeps_owners=False)
            try:
                final = self._stage(self._plan.target(self._request.target))
            except RecursionError:
                raise BuildError(f"{self._request.file}: too many stages that stand on each other") from None
        if self._request.labels:
            final.config["Labels"] = {**(final.config.get("Labels") or {}), **self._request.labels}
        final.document["rootfs"] = {"type": "layers", "diff_ids": [each.diff for each in final.layers]}
        final.document["created"] = self._created
        return Built(final.document, [each.blob for each in final.layers])

    # Stages

    def _stage(self, planned: Planned) -> Stage:
        if planned.index not in self._done:
            self._done[planned.index] = self._build(planned)
        return self._done[planned.index]

    def _build(self, planned: Planned) -> Stage:
        with self._placed(planned.begin):
            stage, triggers = self._begin(planned)
        steps = [*triggers, *planned.instructions]
        title = planned.name or ("" if len(self._plan.stages) == 1 else f"stage {planned.index}")
        self._say(f"{_title(title, 1, len(steps) + 1)} {planned.begin.original}")
        for number, instruction in enumerate(steps, 2):
            with self._placed(instruction):
                told = len(stage.warnings)
                self._step(self._prepared(stage, planned, instruction, _title(title, number, len(steps) + 1)))
                for warning in stage.warnings[told:]:
                    self._say(f"warning: {self._request.file}:{instruction.line}: {warning}")
        return stage

    def _prepared(self, stage: Stage, planned: Planned, instruction: Instruction, title: str) -> Step:
        return Step(
            stage,
            instruction,
            title,
            self._kept,
            self._context,
            self._latest,
            self._request.cache,
            {name: value for name, value in self._request.arguments.items() if name in stages.PREDEFINED},
            lambda name: self._layers_of(planned, name),
            self._say,
            self._show,
        )

    def _begin(self, planned: Planned) -> tuple[Stage, list[Instruction]]:
        """A stage as it is after FROM, and what its base wants to be done then (ONBUILD)."""
        stage = self._base(planned)
        triggers = stage.config.pop("OnBuild", None) or []
        line, file = planned.begin.line, self._request.file
        return stage, [parsing.one(file, each, line, self._dockerfile.escape) for each in triggers]

    def _base(self, planned: Planned) -> Stage:
        earlier = self._plan.stage(planned.image, planned.index)
        if earlier is not None and not planned.image.isdecimal():
            return self._stage(earlier).next(planned.name)
        if planned.image == "scratch":
            return stages.scratch(planned.name, self._dockerfile.escape, self._created)
        raw, layers = self._bases.find(planned.image)
        stage = Stage(planned.name, self._dockerfile.escape, stages.base_document(raw, self._created), list(layers))
        stage.key = key_of("FROM", hashlib.sha256(raw).hexdigest())
        stage.shell = tuple(stage.config.get("Shell") or stages.SHELL)
        return stage

    @contextlib.contextmanager
    def _placed(self, instruction: Instruction) -> Iterator[None]:
        """Adds the place to what goes wrong."""
        try:
            yield
        except BuildError:
            raise
        except (ValueError, ClusterError, once.NotStarted) as error:
            raise placed(self._request.file, instruction.line, instruction.keyword, error) from None
        except OSError as error:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
            raise placed(self._request.file, instruction.line, instruction.keyword, text) from None

    # Steps

    def _step(self, step: Step) -> None:
        stage, instruction = step.stage, step.instruction
        keyword = instruction.keyword
        if keyword in FILE_STEPS:
            FILE_STEPS[keyword](step)
            return
        step.say("")
        if keyword == "ARG":
            given, outer = self._request.arguments, self._plan.arguments
            stage.arguments |= stages.argument_values(instruction.text, given, outer, stage.expand, stage.escape)
        else:
            if keyword == "ONBUILD":
                parsing.one(self._request.file, instruction.text, instruction.line, stage.escape)
            stages.META[keyword](stage, instruction)
            stage.key = key_of(stage.key, keyword, stage.config, stage.shell, stage.document.get("author"))
        stage.tell(instruction.original, empty=True)

    def _layers_of(self, planned: Planned, name: str) -> list[Layer]:
        """The layers of an earlier stage, or of an image. ValueError and ClusterError."""
        earlier = self._plan.stage(name, planned.index)
        if earlier is not None:
            return self._stage(earlier).layers
        if self._plan.stage(name) is not None:
            raise ValueError(f"the stage {name!r} comes only later")
        if name.isdecimal():
            raise ValueError(f"there is no stage {name} before this one")
        return [] if name == "scratch" else self._bases.find(name)[1]


FILE_STEPS: dict[str, Callable[[Step], None]] = {
    "ADD": copy_step.copy,
    "COPY": copy_step.copy,
    "RUN": run_step.run,
    "WORKDIR": copy_step.workdir,
}
"""The instructions that write files."""


def _title(name: str, number: int, total: int) -> str:
    return f"[{name + ' ' if name else ''}{number}/{total}]"


def _epoch(arguments: dict[str, str]) -> int | None:
    text = arguments.get("SOURCE_DATE_EPOCH") or os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        return None
    if not text.isdecimal() or int(text) >= 1 << 33:
        raise BuildError(f"SOURCE_DATE_EPOCH={text} is no number of seconds")
    return int(text)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
