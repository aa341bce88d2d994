"""The HTTP API: one table of operations, from which requests are answered, rules are made and the
OpenAPI document is written."""
