"""Streams after an HTTP Upgrade: exec, attach, port-forward, watches over WebSocket.

duplex                           connections that are no HTTP any more: taken over, made, joined
websocket, channels              WebSocket (RFC 6455), and Kubernetes' channels in it
spdy, spdy_session               SPDY/3.1 as Kubernetes speaks it: frames (pure), streams
remotecommand, spdy_tunnel       exec and attach of new clients for servers that know only SPDY; SPDY in WebSocket
exec_server, port_forward_server exec, attach and forwarded ports as a runtime serves them
"""
