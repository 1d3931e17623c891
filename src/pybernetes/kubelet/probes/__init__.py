"""Is a container started, alive, ready? Asked by exec, HTTP, TCP or gRPC, as often as its probes say.

manager.ProbeManager   one worker for each probe of each container; what `started` and `ready` mean in a status
worker.ProbeWorker     when to ask, and how many answers make a result (the decision is pure: `probing.Probing`)
prober.Prober          asks once, with events for what goes wrong
exec, http, tcp, grpc  one way to ask each
results.Results        the last result for each container
"""
