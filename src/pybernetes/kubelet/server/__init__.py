"""The kubelet's HTTPS server: logs, exec, attach, port-forward, /pods, metrics, health.

source           the kubelet as the server sees it
server           `KubeletServer`: socket, who may, which handler
authn, authz     who it is (client certificate, token by TokenReview), and whether they may (SubjectAccessReview)
logs             /containerLogs: which file of which container
log_lines        lines in the CRI's format (pure)
log_reader       files of them: tail, since, follow through rotations (inotify: when they have changed)
streaming        /exec, /attach, /portForward, /run: handed to the runtime's streaming server
pods             /pods, /runningpods
system_logs      /logs: files of the node
answers          plain text and JSON
request_metrics  how many requests, and how long they took
"""
