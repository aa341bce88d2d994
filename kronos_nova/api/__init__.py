"""The HTTP API. The paths of the API, its rules for oslo.policy and its OpenAPI document are made
from one table of operations."""
