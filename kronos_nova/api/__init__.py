"""The HTTP API. One table of operations determines the answers to requests, the rules of
oslo.policy, and the OpenAPI document."""
