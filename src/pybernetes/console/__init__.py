"""The console: a page in the user's browser that shows a cluster with the user's own rights.

command     `pyb console`: starts the local server and opens the browser with a one-time key
sessions    one-time keys and the session tokens they are exchanged for (pure)
handler     which requests the server takes: the page, the key, what is passed on to the API server
answers     what the page asks for beside the API: `why` of an object
static/     the page: plain modules, no build step, nothing from other origins
"""
