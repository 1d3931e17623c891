"""The client library: what a component, or a controller of others, needs to talk to a Kubernetes API server.

    config          where the server is and who we are: kubeconfig files, or the pod we run in
    client          get, list, create, update, patch, delete, watch, with our kinds
    informer        a cache that follows the server, and tells about changes
    workqueue       keys to work on, never one of them twice at once
    expectations    what a controller has asked for and not yet seen
    leaderelection  one of several replicas works, the others wait
    events          recording of events
    retry           again after a conflict
    clock           time and timers, replaceable in tests
    metrics         numbers in Prometheus's format

Everything runs on one asyncio event loop and is not safe to use from other threads. Documentation: docs/client.md.
"""
