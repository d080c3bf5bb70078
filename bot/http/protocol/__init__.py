"""The shared parts of all HTTP calls: authentication, bodies, responses, errors, OpenAPI."""
