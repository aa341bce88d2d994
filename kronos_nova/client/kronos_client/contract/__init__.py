"""The operations of Kronos, by noun: what each takes, what it returns, and for whom it is.

API, commands, page, OpenAPI document and policies are made from these tables. The package needs
the standard library and msgspec only, so that a client can be installed without the service.
"""
