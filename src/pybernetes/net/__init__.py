"""The wire protocols that our servers and clients share; knows nothing of the API.

http, request_heads, messages, tcp       a server for HTTP/1.1
acceptor, fair_turns                     new connections and large work, one after another
dialer                                   connections to others
inherited_sockets                        a listening socket passed by the parent process (LISTEN_FDS)
tls, tls_handshakes, client_certificates the server's certificates; clients that come with bad ones
tls_curves, watched_files                the key exchanges it takes part in; files that are read again when they change
upgrade                                  Upgrade requests, passed on to another server
streams/                                 what is spoken after an Upgrade
"""
