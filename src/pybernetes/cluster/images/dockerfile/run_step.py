"""RUN: the command, what it sees beside the files of its stage, and the layer of what it wrote."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pybernetes.cluster.images.dockerfile import mounting, running, stage, words
from pybernetes.cluster.images.dockerfile.parsing import Instruction
from pybernetes.cluster.images.dockerfile.step import Step


def run(step: Step) -> None:
    """RUN. A command that fails is a ValueError."""
    current, instruction = step.stage, step.instruction
    network = instruction.flag("network") or "default"
    if network not in running.NETWORKS:
        raise ValueError(f"--network={network}: it is one of {', '.join(running.NETWORKS)}")
    arguments, script = _command(current, instruction)
    declared = {name: value for name, value in current.arguments.items() if name not in current.environment}
    with contextlib.ExitStack() as stack:
        wanted = [mounting.parse(current.expand(each)) for each in instruction.flags.get("mount", ())]
        mounts = [mounting.Ready(each, current, step.kept, step.tree(each.source_of, stack), stack) for each in wanted]

        def make(upper: Path, work: Path) -> None:
            specs = [each.spec(step.layers(each.wanted.source_of) if each.wanted.source_of else []) for each in mounts]
            if script:
                file = stack.enter_context(step.kept.temporary()) / "script"
                file.write_text(script)
                file.chmod(0o755)
                specs.append(running.bind(file, mounting.SCRIPT, readonly=True))
            with step.kept.merged(current.layers) as root:
                stubs = running.missing(root, [str(each["target"]) for each in specs])
            code = running.run(
                running.Place(step.kept.layers, step.kept.lower(current.layers), upper, work, step.kept.root / "root"),
                arguments,
                {**step.proxies, **declared, **current.environment},
                current.user,
                current.folder,
                network=network,
                mounts=specs,
                output=step.show,
            )
            if code:
                signal = f" (killed by signal {code - 128})" if code > 128 else ""
                raise ValueError(f"the command ended with code {code}{signal}")
            running.remove_stubs(upper, stubs)

        step.made(["RUN", arguments, script, sorted(declared.items()), network, [each.key for each in mounts]], make)


def _command(current: stage.Stage, instruction: Instruction) -> tuple[list[str], str]:
    """The command of RUN, and the script that it needs as a file, if any."""
    documents = instruction.heredocs
    if not documents:
        found = stage.command(current, instruction.text)
        if not found:
            raise ValueError("the command is empty")
        return found, ""
    if len(documents) == 1 and len(words.split(instruction.text, current.escape)) == 1:
        if documents[0].content.startswith("#!"):
            return [mounting.SCRIPT], documents[0].content
        return [*current.shell, documents[0].content], ""
    following = "".join(f"{each.content}{each.name}\n" for each in documents)
    return [*current.shell, f"{instruction.text}\n{following}"], ""
