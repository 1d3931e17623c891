"""Names as generated clients know them: of definitions, and of groups in operation ids and tags."""

from __future__ import annotations

from pybernetes.api.base import Struct

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
# Types with a name that are not classes here, by the format of the field.
NAMED_FORMATS = {
    "quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "int-or-string": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "raw-extension": "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "date-time": f"{META}.Time",
    "micro-time": f"{META}.MicroTime",
    "fields-v1": f"{META}.FieldsV1",
    "json": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
}
# Packages that are not below io.k8s.api.
_PACKAGES = {
    "meta": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "metrics": "io.k8s.metrics.pkg.apis.metrics",
}


def definition_name(cls: type[Struct]) -> str:
    """`pybernetes.api.core.v1.pod.Pod` -> `io.k8s.api.core.v1.Pod`. A class may say it in `definition_name`."""
    named: str | None = getattr(cls, "definition_name", None)
    if named:
        return named
    package, version = cls.__module__.split(".")[2:4]
    return f"{_PACKAGES.get(package) or f'io.k8s.api.{package}'}.{version}.{cls.__name__}"


def group_words(group: str) -> str:
    """`rbac.authorization.k8s.io` -> `rbacAuthorization`, as tags begin."""
    if not group:
        return "core"
    first, *rest = group.removesuffix(".k8s.io").split(".")
    return first + "".join(map(capitalized, rest))


def capitalized(word: str) -> str:
    """The word with a capital first letter."""
    return word[:1].upper() + word[1:]


def operation_prefix(group: str, version: str = "") -> str:
    """`AppsV1`, in the middle of an operation id."""
    return capitalized(group_words(group)) + capitalized(version)
