"""Gives Services of type LoadBalancer their addresses.

`pool` says which addresses there are (pure), `controller` gives them to Services. The nodes announce them
(`network.loadbalancer`): what the controller writes into a Service's status is all that they know.
"""
