"""`kubectl ns`: lists the namespaces, or makes one the namespace of the current context."""

from __future__ import annotations

from pybernetes.kubectl.command import Command
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kubeconfig_edit import Editor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context


def run(context: Context, arguments: list[str]) -> int | None:
    """`ns [NAME]`."""
    current = context.namespace()
    if not arguments:
        for item in context.client.get("/api/v1/namespaces").get("items") or ():
            name = item["metadata"]["name"]
            context.out(f"{'*' if name == current else ' '} {name}\n")
        return None
    context.client.get(f"/api/v1/namespaces/{arguments[0]}")
    editor = Editor(context.flags.get("kubeconfig") or "")
    name = editor.current_context()
    found = editor.find("contexts", name)
    if found is None:
        raise CLIError("current-context is not set")
    editor.put("contexts", name, {**(found[1].get("context") or {}), "namespace": arguments[0]})
    editor.save()
    context.out(f'Context "{name}" uses namespace "{arguments[0]}".\n')
    return None


COMMAND = Command("ns [NAME]", "List namespaces, or switch the current context to one", run)
