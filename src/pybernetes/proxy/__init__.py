"""Services on a node: packets to a Service's addresses reach one of its endpoints (`pyb proxy`).

endpoints      which endpoints of a port serve this node (pure)
frontends      a Service and its slices as entries of flat maps (pure)
ruleset        the entries of all Services; what to change when one changes (pure)
chains         the table's chains and rules (pure)
kernel         puts changes into the kernel, and notices what others change there
conntrack      removes tracked UDP connections whose endpoint is gone
proxier        follows Services and EndpointSlices and keeps the kernel in step
health_checks  answers on the health check node ports of load balancers
serving        /healthz, /livez, /metrics
config, options, command    flags, configuration file, the process

Design: one map leads from (address, protocol, port) to a chain that is shared by all Services with the same number of
endpoints; the chain draws an index, and a second map leads from (address, protocol, port, index) to the endpoint. So a
change of a Service is a change of a few map elements, whatever the number of Services.
"""
