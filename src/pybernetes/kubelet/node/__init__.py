"""The Node object and this machine: registration, status, resources, certificates, shutdown.

reporter       registers the Node, reports its status, renews its Lease
status         the Node object: capacity, conditions, addresses. Pure
view           gathers what the Node's status is made of
facts          what containers and volumes may read about the node
allocatable    capacity, reserved resources, allocatable
admission      admission handlers in order: resources, topology, devices, preemption
shutdown       graceful node shutdown by pod priority
oom_watcher    SystemOOM events
bootstrap      TLS bootstrap with a bootstrap token
certificates   client and serving certificates, requested by CertificateSigningRequest and rotated
"""
