"""COPY and ADD: what they take, where it goes, and the layer that comes of it. WORKDIR makes a folder, likewise."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from pybernetes.cluster.images.dockerfile import adding, copying, ignoring, modes, sources, stage, users, words
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cluster.images.dockerfile.sources import Source
from pybernetes.cluster.images.dockerfile.step import Step


def workdir(step: Step) -> None:
    """WORKDIR: the folder is there from now on, and is its user's if it is new."""
    current = step.stage
    path = stage.working_directory(current, step.instruction)
    owner = users.owner(step.kept, current.layers, current.user, same_group=False)

    def make(upper: Path, work: Path) -> None:
        with step.kept.merged(current.layers, upper, work) as root:
            target = copying.Target(root, owner, latest=step.latest)
            target.make_folder(path)
            target.finish()

    step.made(["WORKDIR", path, owner], make)
    current.config["WorkingDir"] = path


def copy(step: Step) -> None:
    """COPY and ADD."""
    current, instruction = step.stage, step.instruction
    with contextlib.ExitStack() as stack:
        names, destination = _words(current, instruction)
        into = destination.endswith(("/", "/.")) or destination == "."
        if len(names) > 1 and not into:
            raise ValueError(f"several sources need a folder: {destination!r} must end with /")
        path = "/" + ignoring.clean(destination if destination.startswith("/") else f"{current.folder}/{destination}")
        owner = None
        if chown := current.expand(instruction.flag("chown")):
            owner = users.owner(step.kept, current.layers, chown, same_group=True)
        mode = modes.check(current.expand(instruction.flag("chmod")))
        tree = step.tree(current.expand(instruction.flag("from")), stack)
        scratch = adding.Scratch(stack, step.kept.temporary)
        found = _found(current, instruction, names, tree, scratch)
        key = [[each.name, each.is_folder, sources.fingerprint(each, owner, mode)] for each in found.all]

        def make(upper: Path, work: Path) -> None:
            ready = [scratch.unpacked(each) if each in found.archives else each for each in found.all]
            with step.kept.merged(current.layers, upper, work) as root:
                target = copying.Target(root, owner, mode, step.latest)
                if into:
                    target.make_folder(path)
                target.copy(ready, path, into=into)
                target.finish()

        step.made([instruction.keyword, key, len(found.archives), path, into, owner, mode], make)


@dataclass
class _Found:
    """The sources, and those among them that are unpacked."""

    all: list[Source] = field(default_factory=list)
    archives: list[Source] = field(default_factory=list)


def _words(current: stage.Stage, instruction: Instruction) -> tuple[list[str], str]:
    """The sources as they are written, and the destination."""
    given = words.json_words(instruction.text)
    names = given if given is not None else instruction.text.split()
    if len(names) < 2:
        raise ValueError("wants at least one source, and a destination")
    destination = current.expand(names[-1])
    if not destination:
        raise ValueError("the destination is empty")
    return names[:-1], destination


def _found(
    current: stage.Stage, instruction: Instruction, names: list[str], tree: sources.Tree, scratch: adding.Scratch
) -> _Found:
    adds = instruction.keyword == "ADD"
    excluded = ignoring.Patterns([current.expand(each) for each in instruction.flags.get("exclude", ())])
    checksum = current.expand(instruction.flag("checksum"))
    unpacks = _switch(current.expand(instruction.flag("unpack")))
    documents = {each.word: each for each in instruction.heredocs}
    found = _Found()
    for word in names:
        if document := documents.get(word):
            text = document.content
            if document.expands:
                text = words.expand_text(text, current.variables, current.escape)
            found.all.append(scratch.file(document.name, text.encode()))
            continue
        path = current.expand(word)
        if adds and adding.is_remote(path):
            loaded = scratch.download(path, checksum)
            found.all.append(loaded)
            found.archives += [loaded] if unpacks and adding.is_archive(loaded) else []
            continue
        if checksum:
            raise ValueError(f"--checksum is for sources that are URLs, and {path!r} is none")
        matches = sources.find(tree, path, excluded)
        if not matches:
            current.warnings.append(f"{path!r} matches nothing")
        found.all += matches
        found.archives += [each for each in matches if adds and unpacks is not False and adding.is_archive(each)]
    return found


def _switch(text: str) -> bool | None:
    """Whether --unpack says yes or no, or nothing."""
    found = {"": None, "true": True, "false": False, "1": True, "0": False}
    if text not in found:
        raise ValueError(f"--unpack={text}: it is true or false")
    return found[text]
