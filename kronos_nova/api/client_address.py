"""The address of a client, from the connection or from the headers of a proxy.

A proxy appends the client's address to a header such as ``X-Forwarded-For``. A client can forge the
earlier entries of the header, so only the last entry is used. oslo.middleware trusts all entries,
and is therefore not used.
"""

import ipaddress
from collections.abc import Mapping

from kronos_nova import boundary

LONGEST = 100
"""Maximum number of characters of a client's address in the log. A longer address is cut. Raised,
an invalid address in a proxy's header makes a log line longer; lowered, an IPv6 address with a zone
may be cut. Chosen above the longest valid address, which has 45 characters and a zone."""

IPV6_PREFIX = 64
"""Number of leading bits of an IPv6 address that identify the network of a client. Wrong passwords
are counted per network. Raised, the addresses of one machine count as several networks, so its user
can try more passwords; lowered, clients in different networks share one count of wrong passwords.
Fixed by RFC 4291, which gives each network 64 bits."""


def address_of(env: Mapping[str, str], trusts_proxy: bool) -> str:
    """Return the address from which a request came, as a text without control characters for a log.

    :param env: WSGI environment of the request
    :param trusts_proxy: whether to use the headers of a proxy; false to use the address of the
        connection
    """
    claimed = env.get('REMOTE_ADDR') or 'unknown'
    if trusts_proxy:
        claimed = _last(env.get('HTTP_X_FORWARDED_FOR')) or _last_for(
            env.get('HTTP_FORWARDED')) or claimed
    found = _parsed(claimed)
    return str(found) if found else boundary.shown(claimed, LONGEST)


def network_of(address: str) -> str:
    """Return the network to which an address belongs. Wrong passwords are counted for each network.
    The network of an IPv4 address is the address itself. The network of an IPv6 address is written
    as the lowest address with the same first 64 bits."""
    found = _parsed(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False).network_address)
    return address


def _last(header: str | None) -> str:
    return (header or '').rpartition(',')[2].strip()


def _last_for(header: str | None) -> str:
    """Return the client's address from the last entry of a ``Forwarded`` header (RFC 7239)."""
    pairs = (pair.partition('=') for pair in _last(header).split(';'))
    return next((value.strip() for name, _sign, value in pairs
                 if name.strip().lower() == 'for'), '')


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address in a text such as ``192.0.2.1``, ``192.0.2.1:4711`` or
    ``"[2001:db8::1]:80"``; None if there is no IP address."""
    plain = text.strip().strip('"')
    if plain.startswith('['):
        plain = plain[1:].partition(']')[0]
    elif plain.count(':') == 1:
        plain = plain.partition(':')[0]
    try:
        found = ipaddress.ip_address(plain)
    except ValueError:
        return None
    return getattr(found, 'ipv4_mapped', None) or found
