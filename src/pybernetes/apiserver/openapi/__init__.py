"""What is served, as OpenAPI documents: for `kubectl explain`, validation on the client, generated clients."""
