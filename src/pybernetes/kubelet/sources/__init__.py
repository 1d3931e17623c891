"""Where pods come from that the API server does not know: a folder of files, and a URL."""
