"""Descriptions of ConfigMaps, Secrets, ServiceAccounts, Namespaces, quotas, limits, priorities and budgets."""

from __future__ import annotations

from pybernetes.kubectl.data import dig
from pybernetes.kubectl.describing.description import Description
from pybernetes.kubectl.describing.text import ZERO, selector_text, when

_SCOPES = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before"
    " being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually include long running"
    " pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a best effort quality"
    " of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These pods have a burstable or"
    " guaranteed quality of service.",
}
"""The meaning of each scope of a quota."""


def _scopes(this: Description, obj: dict[str, object], level: int, bullet: str) -> None:
    scopes = sorted(dig(obj, "spec", "scopes", default=[]))
    if not scopes:
        return
    this.write(level, f"Scopes:\t{', '.join(scopes)}\n")
    for each in scopes:
        if each in _SCOPES:
            this.write(level, f"{bullet}{_SCOPES[each]}\n")


def config_map(this: Description) -> None:
    """A ConfigMap with its values."""
    this.head()
    this.write(0, "\nData\n====\n")
    for key in sorted(this.obj.get("data") or {}):
        this.write(0, f"{key}:\n----\n{this.obj['data'][key]}\n\n")
    this.write(0, "\nBinaryData\n====\n")
    from binascii import a2b_base64

    for key in sorted(this.obj.get("binaryData") or {}):
        this.write(0, f"{key}: {len(a2b_base64(this.obj['binaryData'][key]))} bytes\n")
    this.write(0, "\n")
    this.events()


def secret(this: Description) -> None:
    """A Secret without its values."""
    from binascii import a2b_base64

    this.head()
    this.write(0, f"\nType:\t{this.obj.get('type', '')}\n\nData\n====\n")
    for key in sorted(this.obj.get("data") or {}):
        value = a2b_base64(this.obj["data"][key])
        if key == "token" and this.obj.get("type") == "kubernetes.io/service-account-token":
            this.write(0, f"{key}:\t{value.decode('utf-8', 'replace')}\n")
        else:
            this.write(0, f"{key}:\t{len(value)} bytes\n")


def service_account(this: Description) -> None:
    """A ServiceAccount with the Secrets that its pods pull images with."""
    this.head()
    names = [each.get("name", "") for each in this.obj.get("imagePullSecrets") or ()]
    for at, name in enumerate(names or ["<none>"]):
        this.write(0, f"{'Image pull secrets:' if not at else ' ' * 19}\t{name}\n")
    this.events()


def namespace(this: Description) -> None:
    """A Namespace with its quotas and limits."""
    this.head(namespace=False)
    this.write(0, f"Status:\t{this.get('status', 'phase', default='')}\n")
    conditions = this.get("status", "conditions", default=[])
    if conditions:
        this.write(0, "Conditions:\n")
        this.write(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage\n")
        this.write(1, "----\t------\t------------------\t------\t-------\n")
    for each in conditions:
        words = (each.get("type", ""), each.get("status", ""), when(each.get("lastTransitionTime"), ZERO))
        this.write(1, "\t".join((*words, each.get("reason", ""), each.get("message", ""))) + "\n")
    quotas = this.fetch(f"/api/v1/namespaces/{this.info.name}/resourcequotas")
    if not quotas:
        this.write(0, "\nNo resource quota.\n")
    else:
        this.write(0, "\nResource Quotas\n")
        for each in quotas:
            this.write(1, f"Name:\t{each['metadata']['name']}\n")
            _scopes(this, each, 1, "* ")
            this.write(1, "Resource\tUsed\tHard\n")
            this.write(1, "--------\t---\t---\n")
            hard, used = dig(each, "status", "hard", default={}), dig(each, "status", "used", default={})
            for key in sorted(hard):
                this.write(1, f"{key}\t{used.get(key, '0')}\t{hard[key]}\n")
    limits = this.fetch(f"/api/v1/namespaces/{this.info.name}/limitranges")
    if not limits:
        this.write(0, "\nNo LimitRange resource.\n")
    else:
        this.write(
            0, "\nResource Limits\n Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n"
        )
        this.write(0, " ----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n")
        for each in limits:
            _limits(this, each.get("spec") or {}, " ")


def _limits(this: Description, spec: dict[str, object], pad: str = "") -> None:
    columns = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")
    for item in spec.get("limits") or ():  # type: ignore[attr-defined]
        names = sorted({key for column in columns for key in item.get(column) or {}})
        for name in names:
            cells = "\t".join(str((item.get(column) or {}).get(name, "-")) for column in columns)
            this.write(0, f"{pad}{item.get('type')}\t{name}\t{cells}\n")


def limit_range(this: Description) -> None:
    """A LimitRange."""
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    this.write(0, "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n")
    this.write(0, "----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n")
    _limits(this, this.obj.get("spec") or {})


def quota(this: Description) -> None:
    """A ResourceQuota with what is used."""
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    _scopes(this, this.obj, 0, " * ")
    this.write(0, "Resource\tUsed\tHard\n--------\t----\t----\n")
    hard, used = this.get("status", "hard", default={}), this.get("status", "used", default={})
    for key in sorted(hard):
        this.write(0, f"{key}\t{used.get(key, '0')}\t{hard[key]}\n")


def priority_class(this: Description) -> None:
    """A PriorityClass."""
    obj = this.obj
    this.write(0, f"Name:\t{this.info.name}\nValue:\t{obj.get('value', 0)}\n")
    this.write(0, f"GlobalDefault:\t{'true' if obj.get('globalDefault') else 'false'}\n")
    this.write(0, f"PreemptionPolicy:\t{obj.get('preemptionPolicy', '')}\n")
    this.write(0, f"Description:\t{obj.get('description', '')}\n")
    from pybernetes.kubectl.describing.text import joined

    annotations = this.get("metadata", "annotations", default={})
    this.write(0, f"Annotations:\t{joined(annotations)}\n")
    this.events()


def disruption_budget(this: Description) -> None:
    """A PodDisruptionBudget."""
    spec, status = this.obj.get("spec") or {}, this.obj.get("status") or {}
    this.write(0, f"Name:\t{this.info.name}\nNamespace:\t{this.info.namespace}\n")
    if "minAvailable" in spec:
        this.write(0, f"Min available:\t{spec['minAvailable']}\n")
    elif "maxUnavailable" in spec:
        this.write(0, f"Max unavailable:\t{spec['maxUnavailable']}\n")
    this.write(0, f"Selector:\t{selector_text(spec.get('selector'), '<unset>')}\n")
    this.write(0, "Status:\n")
    for title, key in (
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ):
        this.write(2, f"{title}:\t{status.get(key, 0)}\n")
    this.events()
