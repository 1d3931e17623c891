"""`kubectl convert`: objects of files in another version of their API, as the kubectl-convert plugin prints them."""

from __future__ import annotations

from pybernetes.kubectl import mutating
from pybernetes.kubectl.builder import Builder
from pybernetes.kubectl.command import Command
from pybernetes.kubectl.converting import convert
from pybernetes.kubectl.errors import CLIError, raise_all
from pybernetes.kubectl.flags import Flag
from pybernetes.kubectl.printing import PRINT_FLAGS, generic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`convert -f FILE`."""
    flags = context.flags
    if not flags.words("filename") and not flags.text("kustomize"):
        raise CLIError("must specify one of -f and -k")
    builder = Builder(context).files(flags.words("filename"), flags.on("recursive"), flags.text("kustomize"))
    builder.local, builder.latest = flags.on("local"), not flags.on("local")
    infos = builder.infos()
    if not infos and not builder.errors:
        raise CLIError("no objects passed to convert")
    objects = [convert(info.object, flags.text("output-version")) for info in infos]
    output = flags.text("output") or ("" if flags.text("template") else "yaml")
    if objects:
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
        context.out(generic(flags, output)(objects[0] if len(objects) == 1 else whole))
    raise_all(builder.errors)
    return None


COMMAND = Command(
    "convert -f FILENAME",
    "Convert config files between different API versions",
    run,
    flags=(
        *PRINT_FLAGS,
        *mutating.FILENAME_FLAGS,
        Flag("local", "bool", True, "Convert what the files say, without asking the server."),
        Flag("output-version", help="Group and version of the result, such as apps/v1beta1."),
    ),
)
