"""The HTTP API. Everything follows from one table of operations: the answers to requests, the rules
of oslo.policy, and the OpenAPI document."""
