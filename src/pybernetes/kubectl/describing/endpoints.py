"""Descriptions of Endpoints and EndpointSlices."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description


def endpoints(this: Description) -> None:
    """Endpoints with their subsets."""
    this.head()
    this.write(0, "Subsets:\n")
    for subset in this.obj.get("subsets") or ():
        for key, title in (("addresses", "Addresses"), ("notReadyAddresses", "NotReadyAddresses")):
            found = ",".join(each.get("ip", "") for each in subset.get(key) or ())
            this.write(1, f"{title}:\t{found or '<none>'}\n")
        if subset.get("ports"):
            this.write(1, "Ports:\n")
            this.write(2, "Name\tPort\tProtocol\n")
            this.write(2, "----\t----\t--------\n")
            for port in subset["ports"]:
                this.write(2, f"{port.get('name') or '<unset>'}\t{port.get('port', 0)}\t{port.get('protocol', '')}\n")
        this.line()
    this.events()


def endpoint_slice(this: Description) -> None:
    """An EndpointSlice with its ports and endpoints."""
    this.head()
    this.write(0, f"AddressType:\t{this.obj.get('addressType', '')}\n")
    ports = this.obj.get("ports") or []
    if ports:
        this.write(0, "Ports:\n")
        this.write(1, "Name\tPort\tProtocol\n")
        this.write(1, "----\t----\t--------\n")
    else:
        this.write(0, "Ports: <unset>\n")
    for port in ports:
        number = port.get("port")
        shown = "<unset>" if number is None else number
        this.write(1, f"{port.get('name') or '<unset>'}\t{shown}\t{port.get('protocol', '')}\n")
    found = this.obj.get("endpoints") or []
    this.write(0, "Endpoints:\n" if found else "Endpoints: <none>\n")
    for each in found:
        this.write(1, f"- Addresses:\t{', '.join(each.get('addresses') or ()) or '<none>'}\n")
        ready = dig(each, "conditions", "ready")
        this.write(2, "Conditions:\n")
        this.write(3, f"Ready:\t{'<unset>' if ready is None else 'true' if ready else 'false'}\n")
        this.write(2, f"Hostname:\t{each.get('hostname', '<unset>')}\n")
        target = each.get("targetRef")
        if target:
            this.write(2, f"TargetRef:\t{target.get('kind', '')}/{target.get('name', '')}\n")
        this.write(2, f"NodeName:\t{each.get('nodeName', '<unset>')}\n")
        this.write(2, f"Zone:\t{each.get('zone', '<unset>')}\n")
    this.events()
