"""The OpenAPI documents of the served API: for `kubectl explain`, validation on the client, generated clients."""
