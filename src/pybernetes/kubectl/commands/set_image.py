"""`kubectl set image`."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import Aggregate, CLIError
from pybernetes.kubectl.setting import FLAGS, change, infos, pod_spec, split_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`set image`."""
    flags = context.flags
    resources, pairs = split_pairs(arguments)
    images = {}
    for pair in pairs:
        name, equals, image = pair.partition("=")
        if not equals:
            raise CLIError(f"all resources must be specified before image changes: {pair}")
        if not name or not image:
            raise CLIError(f"invalid image format: {pair}")
        images[name] = image
    problems: list[CLIError] = []
    if not arguments and not flags.words("filename") and not flags.get("kustomize"):
        infos(context, [])  # says what is missing
    if flags.on("all") and flags.get("selector"):
        problems.append(CLIError("cannot set --all and --selector at the same time"))
    if not resources and not flags.words("filename") and not flags.get("kustomize"):
        problems.append(CLIError("one or more resources must be specified as <resource> <name> or <resource>/<name>"))
    if not images:
        problems.append(CLIError("at least one image update is required"))
    elif len(images) > 1 and "*" in images:
        problems.append(
            CLIError(
                "all containers are already specified by *, but saw more than one container_name=container_image pairs"
            )
        )
    if problems:
        raise problems[0] if len(problems) == 1 else Aggregate(problems)
    found, errors = infos(context, resources)

    def mutate(obj: dict[str, Any]) -> None:
        spec = pod_spec(obj)
        if spec is None:
            raise CLIError(f"the object is not a pod or does not have a pod template: *v1.{obj.get('kind')}")
        for name, image in images.items():
            hit = False
            for container in [*(spec.get("initContainers") or ()), *spec.get("containers", ())]:
                if name in ("*", container["name"]):
                    container["image"] = image
                    hit = True
            if not hit:
                raise CLIError(f'error: unable to find container named "{name}"')

    return change(context, found, errors, mutate, "image updated")


COMMAND = Command(
    "image (-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N",
    "Update the image of a pod template",
    run,
    flags=(*FLAGS, mutating.SELECTOR),
)
