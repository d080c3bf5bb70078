"""What every HTTP call shares: authentication, bodies, responses, errors, OpenAPI."""
