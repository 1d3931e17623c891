"""Builds an image: carries out the stages of a Dockerfile that the wanted one needs, step by step.

A step that touches files is looked up by a key first: what was before it, what it says, and the content of what it
copies. The same key means the same layer, which is taken from the last time. Everything wrong is a BuildError that
names file, line and instruction.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import (
    adding,
    copying,
    ignoring,
    mounting,
    parsing,
    running,
    sources,
    users,
    words,
)
from pybernetes.cluster.images.dockerfile import (
    stage as stages,
)
from pybernetes.cluster.images.dockerfile.bases import Bases
from pybernetes.cluster.images.dockerfile.errors import BuildError, placed
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cluster.images.dockerfile.plan import Plan, Planned, plan, unused
from pybernetes.cluster.images.dockerfile.stage import Layer, Stage
from pybernetes.cluster.layout import Layout
from pybernetes.cri.embedded import once
from pybernetes.cri.embedded.images.manifests import MOST_LAYERS


@dataclass(frozen=True)
class Request:
    """What is asked for: the context, the Dockerfile's name and content, and the command's flags."""

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
                self._step(stage, planned, instruction, _title(title, number, len(steps) + 1))
                for warning in stage.warnings[told:]:
                    self._say(f"warning: {self._request.file}:{instruction.line}: {warning}")
        return stage

    def _begin(self, planned: Planned) -> tuple[Stage, list[Instruction]]:
        earlier = self._plan.stage(planned.image, planned.index)
        if earlier is not None and not planned.image.isdecimal():
            return self._stage(earlier).next(planned.name), []
        if planned.image == "scratch":
            return stages.scratch(planned.name, self._dockerfile.escape, self._created), []
        raw, layers = self._bases.find(planned.image)
        document = json.loads(raw)
        document["created"] = self._created
        document["config"] = document.get("config") or {}
        document["history"] = document.get("history") or []
        stage = Stage(planned.name, self._dockerfile.escape, document, list(layers))
        stage.key = _key("FROM", hashlib.sha256(raw).hexdigest())
        stage.shell = tuple(stage.config.get("Shell") or stages.SHELL)
        triggers = stage.config.pop("OnBuild", None) or []
        line, file = planned.begin.line, self._request.file
        return stage, [parsing.one(file, str(each), line, self._dockerfile.escape) for each in triggers]

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

    def _step(self, stage: Stage, planned: Planned, instruction: Instruction, title: str) -> None:
        keyword = instruction.keyword
        if keyword in ("COPY", "ADD"):
            self._copy(stage, planned, instruction, title)
        elif keyword == "RUN":
            self._run(stage, planned, instruction, title)
        elif keyword == "WORKDIR":
            self._workdir(stage, instruction, title)
        elif keyword == "ARG":
            self._say(f"{title} {instruction.original}")
            given, outer = self._request.arguments, self._plan.arguments
            stage.arguments |= stages.argument_values(instruction.text, given, outer, stage.expand, stage.escape)
            stage.tell(instruction.original, empty=True)
        else:
            if keyword == "ONBUILD":
                parsing.one(self._request.file, instruction.text, instruction.line, stage.escape)
            self._say(f"{title} {instruction.original}")
            stages.META[keyword](stage, instruction)
            stage.key = _key(stage.key, keyword, stage.config, stage.shell, stage.document.get("author"))
            stage.tell(instruction.original, empty=True)

    def _workdir(self, stage: Stage, instruction: Instruction, title: str) -> None:
        path = stages.working_directory(stage, instruction)
        owner = users.owner(self._kept, stage.layers, stage.user, same_group=False)

        def make(upper: Path, work: Path) -> None:
            with self._kept.merged(stage.layers, upper, work) as root:
                target = copying.Target(root, owner, latest=self._latest)
                target.make_folder(path)
                target.finish()

        self._made(stage, instruction, title, ["WORKDIR", path, owner], make)
        stage.config["WorkingDir"] = path

    def _copy(self, stage: Stage, planned: Planned, instruction: Instruction, title: str) -> None:
        escape = stage.escape
        with contextlib.ExitStack() as stack:
            tree = self._tree(stage, planned, stage.expand(instruction.flag("from")), stack)
            excluded = ignoring.Patterns([stage.expand(each) for each in instruction.flags.get("exclude", ())])
            given = words.json_words(instruction.text)
            names = given if given is not None else instruction.text.split()
            if len(names) < 2:
                raise ValueError("wants at least one source, and a destination")
            destination = stage.expand(names[-1])
            if not destination:
                raise ValueError("the destination is empty")
            into = destination.endswith(("/", "/.")) or destination == "."
            if len(names) > 2 and not into:
                raise ValueError(f"several sources need a folder: {destination!r} must end with /")
            owner = None
            if chown := stage.expand(instruction.flag("chown")):
                owner = users.owner(self._kept, stage.layers, chown, same_group=True)
            mode = _mode(stage.expand(instruction.flag("chmod")))
            scratch = adding.Scratch(stack, self._kept.temporary)
            heredocs = {each.name: each for each in instruction.heredocs}
            found: list[sources.Source] = []
            for word in names[:-1]:
                name = word.lstrip("0123456789").removeprefix("<<").removeprefix("-").strip("'\"")
                if "<<" in word and name in heredocs:
                    document = heredocs[name]
                    content = (
                        words.expand_text(document.content, stage.variables, escape)
                        if document.expands
                        else document.content
                    )
                    found.append(scratch.file(name, content.encode()))
                    continue
                path = stage.expand(word)
                if instruction.keyword == "ADD" and adding.is_remote(path):
                    found.append(scratch.download(path, stage.expand(instruction.flag("checksum"))))
                    continue
                matches = sources.find(tree, path, excluded)
                if not matches:
                    stage.warnings.append(f"{path!r} matches nothing")
                found += matches
            if instruction.flag("checksum") and not any(adding.is_remote(stage.expand(each)) for each in names[:-1]):
                raise ValueError("--checksum is for sources that are URLs")
            path = _absolute(stage.folder, destination)
            unpacks = instruction.keyword == "ADD"
            fingerprints = [
                [
                    each.name,
                    each.is_folder,
                    sources.fingerprint(each, owner, mode),
                    bool(unpacks and adding.is_archive(each)),
                ]
                for each in found
            ]

            def make(upper: Path, work: Path) -> None:
                ready = [scratch.unpacked(each) if unpacks and adding.is_archive(each) else each for each in found]
                with self._kept.merged(stage.layers, upper, work) as root:
                    target = copying.Target(root, owner, mode, self._latest)
                    if into:
                        target.make_folder(path)
                    target.copy(ready, path, into=into)
                    target.finish()

            parts = [instruction.keyword, fingerprints, path, into, owner, mode]
            self._made(stage, instruction, title, parts, make)

    def _tree(self, stage: Stage, planned: Planned, name: str, stack: contextlib.ExitStack) -> sources.Tree:
        """Where a step copies from: the context, an earlier stage, or an image."""
        if not name:
            return self._context
        return sources.Tree(stack.enter_context(self._kept.merged(self._layers_of(planned, name))))

    def _layers_of(self, planned: Planned, name: str) -> list[Layer]:
        earlier = self._plan.stage(name, planned.index)
        if earlier is not None:
            return self._stage(earlier).layers
        if self._plan.stage(name) is not None:
            raise ValueError(f"the stage {name!r} comes only later")
        if name.isdecimal():
            raise ValueError(f"there is no stage {name} before this one")
        return [] if name == "scratch" else self._bases.find(name)[1]

    def _mounted_layers(self, planned: Planned, name: str) -> list[Layer]:
        return self._layers_of(planned, name) if name else []

    def _run(self, stage: Stage, planned: Planned, instruction: Instruction, title: str) -> None:
        network = instruction.flag("network") or "default"
        if network not in running.NETWORKS:
            raise ValueError(f"--network={network}: it is one of {', '.join(running.NETWORKS)}")
        arguments, script = _command(stage, instruction)
        declared = {name: value for name, value in stage.arguments.items() if name not in stage.environment}
        proxies = {name: value for name, value in self._request.arguments.items() if name in stages.PREDEFINED}
        with contextlib.ExitStack() as stack:
            wanted = [mounting.parse(stage.expand(each)) for each in instruction.flags.get("mount", ())]
            mounts = [
                mounting.Ready(each, stage, self._kept, self._tree(stage, planned, each.source_of, stack), stack)
                for each in wanted
            ]
            parts = ["RUN", arguments, script, sorted(declared.items()), network, [each.key for each in mounts]]

            def make(upper: Path, work: Path) -> None:
                specs = [each.spec(self._mounted_layers(planned, each.wanted.source_of)) for each in mounts]
                if script:
                    file = stack.enter_context(self._kept.temporary()) / "script"
                    file.write_text(script)
                    file.chmod(0o755)
                    specs.append(running.bind(file, mounting.SCRIPT, readonly=True))
                targets = [str(each["target"]) for each in specs]
                with self._kept.merged(stage.layers) as root:
                    stubs = running.missing(root, targets)
                place = running.Place(
                    self._kept.layers, self._kept.lower(stage.layers), upper, work, self._kept.root / "root"
                )
                environment = {**proxies, **declared, **stage.environment}
                code = running.run(
                    place,
                    arguments,
                    environment,
                    stage.user,
                    stage.folder,
                    network=network,
                    mounts=specs,
                    output=self._show,
                )
                if code:
                    signal = f" (killed by signal {code - 128})" if code > 128 else ""
                    raise ValueError(f"the command ended with code {code}{signal}")
                running.remove_stubs(upper, stubs)

            self._made(stage, instruction, title, parts, make)

    def _made(
        self,
        stage: Stage,
        instruction: Instruction,
        title: str,
        parts: Sequence[object],
        make: Callable[[Path, Path], None],
    ) -> None:
        """Adds the layer of a step: the one that is kept, or a new one."""
        key = _key(stage.key, stage.config, self._latest, *parts)
        found = self._kept.find(key) if self._request.cache else False
        if found is not False:
            self._say(f"{title} {instruction.original}  (cached)")
        else:
            self._say(f"{title} {instruction.original}")
            if len(stage.layers) >= MOST_LAYERS:
                raise ValueError(f"an image has at most {MOST_LAYERS} layers")
            began = time.perf_counter()
            with self._kept.step() as (upper, work):
                make(upper, work)
                found = self._kept.take(key, upper, stage.layers, self._latest)
            size = f", {found.blob.size / 1e6:.1f} MB" if isinstance(found, Layer) else ""
            self._say(f"    {time.perf_counter() - began:.2f} s{size}")
        stage.key = key
        if isinstance(found, Layer):
            stage.layers.append(found)
        stage.tell(instruction.original, empty=not isinstance(found, Layer))


def _command(stage: Stage, instruction: Instruction) -> tuple[list[str], str]:
    """What RUN runs, and the script that it needs as a file, if any."""
    text, documents = instruction.text, instruction.heredocs
    given = words.json_words(text)
    if given is not None and not documents:
        if not given:
            raise ValueError("the command is empty")
        return given, ""
    if len(documents) == 1 and len(words.split(text, stage.escape)) == 1:
        if documents[0].content.startswith("#!"):
            return [mounting.SCRIPT], documents[0].content
        return [*stage.shell, documents[0].content], ""
    following = "".join(f"{each.content}{each.name}\n" for each in documents)
    return [*stage.shell, f"{text}\n{following}" if following else text], ""


def _absolute(folder: str, path: str) -> str:
    whole = path if path.startswith("/") else f"{folder}/{path}"
    return "/" + ignoring.clean(whole)


def _mode(text: str) -> int | None:
    if not text:
        return None
    try:
        mode = int(text, 8)
    except ValueError:
        raise ValueError(f"--chmod={text}: a mode in octal digits is wanted, as 755") from None
    if not 0 <= mode <= 0o7777:
        raise ValueError(f"--chmod={text} is no mode")
    return mode


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


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
