"""``GET /v1/access``: the caller's user, roles and permissions."""

from kronos_client.contract.base import Maybe
from kronos_client.contract.base import Response
from kronos_nova.api.operation import Call
from kronos_nova.api.operation import Operation


class Access(Response):
    """The caller, the time until which the caller's token is valid, and the operations that the
    policy permits to the caller."""

    user: str
    project: str | None
    is_system: bool
    roles: list[str]
    expires_at: Maybe
    may: list[str]


def show_access(call: Call) -> Access:
    return Access.made_from(call.identity, roles=sorted(call.identity.roles))


OPERATIONS = (
    Operation(method='GET', path='/v1/access', name='access:show', run=show_access, gives=Access,
              summary='Who the token is of, and which operations the policy permits it.'),
)
