"""The Ingress controller of the IngressClass `pybernetes` (`pyb ingress`), and the HTTP proxy that it is.

`annotations` and `rules` say what Ingresses mean, `routes` joins them for all hosts, `headers` what is passed on (all
pure). `certificates` are those of Secrets, `endpoints` the addresses behind a backend. `frontend` is a client's
connection, `upstream` one to an endpoint and the pool of them, `forwarding` the way of one request between the two.
`controller` follows the cluster, `command` starts it all.
"""
