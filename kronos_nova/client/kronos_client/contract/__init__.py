"""The operations of Kronos, one module for each kind of object: the request, the response and the
audience of each operation.

The API, the commands, the web page, the OpenAPI document and the rules of oslo.policy are made from
these tables. The package needs the standard library and msgspec only, so that a client can be
installed without the service.
"""
