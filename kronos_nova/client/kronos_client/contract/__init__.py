"""The operations of the API of Kronos. Each module has the operations on one kind of object: their
requests, responses and required roles.

The API, the commands, the web page, the OpenAPI document and the rules of oslo.policy are made from
these operations. The package needs only the standard library and msgspec, so that a client can be
installed without the service.
"""
