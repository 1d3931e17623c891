"""An operator on kopf: a namespace with the label `quota` gets a ResourceQuota of so many pods."""

import kopf
from kubernetes import client


@kopf.on.create("namespaces", labels={"quota": kopf.PRESENT})
@kopf.on.update("namespaces", labels={"quota": kopf.PRESENT})
def limit(name, labels, **_):
    spec = client.V1ResourceQuotaSpec(hard={"pods": labels["quota"]})
    quota = client.V1ResourceQuota(metadata=client.V1ObjectMeta(name="pods"), spec=spec)
    api = client.CoreV1Api()
    try:
        api.create_namespaced_resource_quota(name, quota)
    except client.ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_resource_quota("pods", name, quota)
