"""The address of a Prometheus API, and its credentials."""

import dataclasses

from kronos_nova.metrics.keystone import TokenSource


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a Prometheus API, and its credentials.

    url : base URL, with a path prefix if there is one, without credentials
    timeout : seconds that a request may take, from the lookup of the host's name to the last byte
        of the answer
    max_bytes : maximum length of an answer after decompression
    bearer_token, bearer_token_file : the token, or the path of a file with the token; at most one
        is set. The file is read for every request
    tenant_header, tenant : name and value of a header, which is sent if ``tenant`` is set
    keystone : source of the keystone token that is sent as X-Auth-Token; None to send no such
        token. With a keystone token, all requests are GET, because Aetos (OpenStack's proxy for
        Prometheus) supports no other method
    """

    url: str
    timeout: float = 10.0
    max_bytes: int = 64 << 20
    bearer_token: str | None = dataclasses.field(default=None, repr=False)
    bearer_token_file: str | None = None
    username: str | None = None
    password: str | None = dataclasses.field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    tenant_header: str = 'X-Scope-OrgID'
    tenant: str | None = None
    keystone: TokenSource | None = None
