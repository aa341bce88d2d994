"""The HTTP API. One table of operations serves to answer requests, to make the rules of oslo.policy
and to write the OpenAPI document."""
