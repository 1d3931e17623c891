"""`pyb at REVISION get RESOURCE [NAME]`: the cluster as it was, as far as the store's history goes."""

from __future__ import annotations

import asyncio
import json

from pybernetes.cluster.commands import flags
from pybernetes.cluster.commands.cluster_of import cluster_of
from pybernetes.cluster.commands.why import resource_of
from pybernetes.cluster.errors import ClusterError


def main(argv: list[str]) -> int:
    """Shows objects at a revision."""
    parser = flags.parser("at", "Shows objects as they were at a revision (a resourceVersion).")
    parser.set_defaults(name=None)
    parser.add_argument("revision", type=flags.count, help="a resourceVersion; `pyb trace` shows who wrote which")
    parser.add_argument("verb", metavar="get", choices=["get"])
    parser.add_argument("resource", help="pods, deploy, widgets.example.com, ...; or RESOURCE/NAME")
    parser.add_argument("object", nargs="?", default="", metavar="NAME", help="one object of it")
    parser.add_argument("--namespace", "-n", help="its namespace (default: the kubeconfig's)")
    parser.add_argument("--all-namespaces", "-A", action="store_true")
    parser.add_argument("--output", "-o", choices=["table", "json", "yaml"], default="table")
    parser.add_argument("--kubeconfig", help="credentials (default: the cluster's own, else $KUBECONFIG)")
    arguments = parser.parse_args(argv)
    _, settings = cluster_of(arguments)

    async def show() -> int:
        from pybernetes.client.transport import Transport
        from pybernetes.cluster.history import History, key_of, text_of

        word, _, part = arguments.resource.partition("/")
        name = arguments.object or part
        transport = Transport(settings)
        try:
            resource = await resource_of(settings, word.lower())
            place = "" if arguments.all_namespaces else arguments.namespace or settings.namespace or "default"
            history = History(transport)
            if arguments.output == "table":
                table = await history.table(resource, arguments.revision, place, name)
                if not table.get("rows"):
                    raise ClusterError(f"there was nothing at revision {arguments.revision}")
                print("\n".join(text_of(table, namespaces=resource.namespaced and not place)))
                return 0
            found = await history.objects(resource, arguments.revision, place, name)
        finally:
            await transport.close()
        if name and not found:
            raise ClusterError(f'{resource.fullname} "{name}" was not there at revision {arguments.revision}')
        found.sort(key=key_of)
        shown = found[0] if name else {"apiVersion": "v1", "kind": "List", "items": found}
        if arguments.output == "json":
            print(json.dumps(shown, indent=4))
        else:
            import yaml

            print(yaml.safe_dump(shown, sort_keys=False), end="")
        return 0

    return asyncio.run(show())
