"""Announces the addresses of Services of type LoadBalancer on the nodes' link.

`election` says which node answers for an address (pure), `neighbors` has the packets of ARP and NDP (pure), `responder`
the sockets, `speaker` follows the cluster. The controller manager gives the addresses (`controllers.servicelb`), the
proxy translates what arrives for them (`proxy.frontends`).
"""
