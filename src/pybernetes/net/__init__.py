"""The wire protocols that our servers and clients share; knows nothing of the API.

http, heads, messages, tcp      a server for HTTP/1.1
accepting, pacing               new connections and large work, one after another
connecting                      connections to others
inherited                       a listening socket passed by the parent process (LISTEN_FDS)
tls, handshakes, chains, watched its certificates, read again when they change; clients that come with bad ones
duplex                          connections that are no HTTP any more: taken over, made, joined
websocket, channels             WebSocket (RFC 6455), and Kubernetes' channels in it
spdy, spdy_session              SPDY/3.1 as Kubernetes speaks it: frames (pure), streams
remotecommand, tunnel           exec and attach of new clients for servers that know only SPDY; SPDY in WebSocket
upgrading                       Upgrade requests, passed on to another server
serving, port_forwarding        exec, attach and forwarded ports as a runtime serves them
"""
