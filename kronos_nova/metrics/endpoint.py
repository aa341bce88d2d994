"""Where a Prometheus API is, and the credentials for it."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a Prometheus API is and how it is entered.

    url : base URL, with a path prefix if there is one, without credentials
    timeout : seconds for a whole answer, from looking up the name to the last byte
    max_bytes : an answer that is longer, decompressed, is refused
    bearer_token, bearer_token_file : at most one; the file is read for every request
    tenant_header, tenant : sent when ``tenant`` is set
    """

    url: str
    timeout: float = 10.0
    max_bytes: int = 64 << 20
    bearer_token: str | None = None
    bearer_token_file: str | None = None
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    tenant_header: str = 'X-Scope-OrgID'
    tenant: str | None = None
