"""Connections through the API server: to containers (log, exec, attach, portforward), pods, nodes and Services (proxy).

handler    what is asked for, who may, admission; imported with the first such request
kubelets   where the kubelet of a node is, and as whom we come to it
streams    exec, attach, portforward
log        logs
proxy      HTTP to a pod, a node or a Service
locations  which address a name like `https:web:443` means
rewriting  redirects and links in what a proxied server answers (pure)
flags      --kubelet-*
"""
