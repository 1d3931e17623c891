"""One object being described: the object, the text so far, and the server for what belongs to it."""

from __future__ import annotations

from pybernetes.kubectl.ages import age
from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.text import Writer, write_annotations, write_labels
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.builder import Info
    from pybernetes.kubectl.context import Context


class Description(Writer):
    """The text of one object's description."""

    def __init__(self, context: Context, info: Info, show_events: bool, chunk: int = 500) -> None:
        super().__init__()
        self.context = context
        self.info = info
        self.obj = info.object
        self.show_events = show_events
        self.chunk = chunk

    def get(self, *path: str | int, default: Any = None) -> Any:
        """A value of the object."""
        return dig(self.obj, *path, default=default)

    def head(self, namespace: bool = True, created: bool = False) -> None:
        """Name, namespace, labels and annotations, as most descriptions begin."""
        from pybernetes.kubectl.describing.text import when

        self.write(0, f"Name:\t{self.info.name}\n")
        if namespace:
            self.write(0, f"Namespace:\t{self.info.namespace}\n")
        if created:
            self.write(0, f"CreationTimestamp:\t{when(self.get('metadata', 'creationTimestamp'))}\n")
        write_labels(self, "Labels", self.get("metadata", "labels"))
        write_annotations(self, "Annotations", self.get("metadata", "annotations"))

    def fetch(self, path: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The items of a list; none where it cannot be read."""
        try:
            return list(self.context.client.list(path, parameters or {}, self.chunk).get("items") or ())
        except CLIError:
            return []

    def events(self) -> None:
        """The object's events."""
        if not self.show_events:
            return
        metadata = self.obj.get("metadata") or {}
        fields = [f"involvedObject.name={metadata.get('name')}", f"involvedObject.kind={self.info.mapping.kind}"]
        if self.info.namespace:
            fields.insert(0, f"involvedObject.namespace={self.info.namespace}")
        if metadata.get("uid") and self.info.mapping.kind != "Node":
            fields.append(f"involvedObject.uid={metadata['uid']}")
        namespace = self.info.namespace
        path = f"/api/v1/namespaces/{namespace}/events" if namespace else "/api/v1/events"
        write_events(self, self.fetch(path, {"fieldSelector": ",".join(fields)}))


def write_events(writer: Writer, found: list[dict[str, Any]]) -> None:
    """The table of events, or `Events: <none>`."""
    if not found:
        writer.write(0, "Events:\t<none>\n")
        return
    found.sort(key=lambda each: str(each.get("lastTimestamp") or ""))
    writer.write(0, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n")
    writer.write(1, "----\t------\t----\t----\t-------\n")
    for event in found:
        first = event.get("eventTime") or event.get("firstTimestamp")
        interval = age(first)
        if event.get("series") is not None:
            interval = (
                f"{age(event['series'].get('lastObservedTime'))} (x{event['series'].get('count', 0)} over {interval})"
            )
        elif event.get("count", 0) > 1:
            interval = f"{age(event.get('lastTimestamp'))} (x{event['count']} over {interval})"
        source = dig(event, "source", "component", default="") or event.get("reportingComponent", "")
        message = str(event.get("message", "")).strip()
        part = dig(event, "involvedObject", "fieldPath")
        message = f"{part}: {message}" if part else message
        writer.write(1, f"{event.get('type')}\t{event.get('reason')}\t{interval}\t{source}\t{message}\n")
