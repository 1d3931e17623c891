"""Cluster DNS: names for Services, their endpoints and pods, and forwarding for everything else.

In the order of a query:

- `message`: reads queries and writes responses in DNS wire format
- `server`: UDP and TCP sockets; answers from `cache` at once, hands the rest to `resolver`
- `resolver`: the plugin chain of a server block: hosts, cluster zone, autopath, forward
- `zone`: the cluster zone as a table of names, changed Service by Service
- `records`: which records a Service and its EndpointSlices have (DNS-based service discovery 1.1); pure
- `pods`: names of pods by address, and the search path of a pod for autopath
- `forward`: asks upstream servers, over UDP and TCP
- `cache`: packed answers by question, with their TTL
- `corefile`: the configuration, in the Corefile syntax of CoreDNS
- `cluster_dns`: all of it on informers: a node's resolver
- `command`: `pyb dns`
"""
