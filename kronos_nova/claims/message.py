"""Checks of claims that arrive in a message.

Every compute host can write to the message bus, so a message may contain anything.
"""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

from kronos_nova import boundary
from kronos_nova.claims import table
from kronos_nova.objects.claim import CLAIMED
from kronos_nova.objects.claim import PREPARED
from kronos_nova.objects.claim import Claim

MOST_ROWS = 2000
"""Maximum number of claims in one message. The control database has at most the same number of
claims of one host. A claim is the set of resources that a host reserves for an instance. Raised, a
message of a faulty host takes more memory; lowered, the messages of hosts with many instances are
refused. Chosen as several times the number of claims on the largest hosts, which have up to two
claims for each instance."""

_AMOUNTS = {'vcpus': 1 << 20, 'memory_mb': 1 << 40, 'disk_gb': 1 << 40}
"""Maximum number of VCPUs, MiB of memory and GiB of disk that are accepted in one claim. A claim is
the set of resources that a host reserves for an instance. Raised, the sum of several claims may no
longer be exact; lowered, the claims of large instances are refused. Chosen far above the resources
of any host."""
_TOPOLOGY_CHARACTERS = 16384
"""Maximum number of characters of an instance's NUMA topology in a claim, as JSON. Raised, a
message of a faulty host takes more memory; lowered, the claims of instances with many NUMA cells
are refused. Not measured."""
_PCI_CHARACTERS = 8192
"""Maximum number of characters of the list of an instance's PCI addresses in a claim, as JSON.
Raised, a message of a faulty host takes more memory; lowered, the claims of instances with many
devices are refused. Not measured."""
_NAMES = {'host': 255, 'node': 255, 'instance_uuid': 36, 'created_at': 40}
"""Maximum number of characters of each text in a claim, by column of the database. Fixed by the
widths of the columns, which are those of Nova for names, uuids and times."""
_KEY_PARTS = 3
"""Number of values by which a message identifies a claim. Fixed by the table of claims: node,
instance and ``resize_target`` identify a claim of a host."""

# Bounds for the time at which a claim was made, relative to now. A claim is not older than its
# instance, and the clock of a host may be far ahead.
_FUTURE = datetime.timedelta(days=365)
_PAST = datetime.timedelta(days=365 * 20)


def claim_of(row: object, host: str, now: datetime.datetime) -> Claim:
    """Check a row of a message, and return it as a Claim of ``host``.

    :raises OutOfBounds: the row is not a valid claim of ``host``
    """
    claim = validated(row)
    if claim.host != host:
        raise boundary.OutOfBounds(
            what='host', problem='is not the host that sent the claim')
    return _in_time(claim, now)


def validated(row: object) -> Claim:
    """Check a row of the table of claims, and return it as a Claim.

    :param row: mapping with the columns of the table as keys
    :raises OutOfBounds: a value has another type than its column, or is outside the column's range
    :raises ValueError: ``created_at`` is not a time
    """
    if not isinstance(row, Mapping):
        raise boundary.OutOfBounds(what='a claim', problem='must be a JSON object')
    values: dict[str, Any] = {
        name: boundary.printable(row.get(name), name, most) for name, most in _NAMES.items()}
    values |= {name: boundary.integer(row.get(name), name, 0, most)
               for name, most in _AMOUNTS.items()}
    values['pci'] = boundary.text(row.get('pci') or '[]', 'pci', _PCI_CHARACTERS)
    devices = boundary.json_of(values['pci'], 'pci', _PCI_CHARACTERS)
    if not isinstance(devices, list) or not all(isinstance(each, str) for each in devices):
        raise boundary.OutOfBounds(what='pci', problem='must be a list of PCI addresses')
    values['numa_topology'] = _text_or_none(row, 'numa_topology', _TOPOLOGY_CHARACTERS)
    values['migration_uuid'] = _text_or_none(row, 'migration_uuid', 36)
    target = row.get('resize_target') or 0  # some databases return a bool as 0 or 1
    values['resize_target'] = boundary.integer(
        int(target) if isinstance(target, bool) else target, 'resize_target', 0, 1)
    values['state'] = row.get('state')
    if values['state'] not in (CLAIMED, PREPARED):
        raise boundary.OutOfBounds(what='state', problem='is not a state that a claim may have')
    return table.from_message({'id': row.get('id'), **values})


def claims_of(rows: object, host: str, now: datetime.datetime) -> list[Claim]:
    """Check the rows of a message, and return them as Claims of ``host``.

    :raises OutOfBounds: there are too many rows, or one is invalid
    """
    if not isinstance(rows, list | tuple):
        raise boundary.OutOfBounds(what='the claims', problem='must be a list')
    boundary.sized(rows, 'the list of claims', MOST_ROWS)
    return [claim_of(row, host, now) for row in rows]


def keys_of(keys: object) -> list[tuple[str, str, bool]]:
    """Return the keys of claims to be removed, as tuples (node, uuid of the instance,
    ``resize_target``).

    :raises OutOfBounds: a key is invalid, or there are too many
    """
    if not isinstance(keys, list | tuple):
        raise boundary.OutOfBounds(what='the keys of claims to remove', problem='must be a list')
    boundary.sized(keys, 'the keys of claims to remove', MOST_ROWS)
    for key in keys:
        if not isinstance(key, list | tuple) or len(key) != _KEY_PARTS:
            raise boundary.OutOfBounds(
                what='a claim key',
                problem='must have three parts: node, instance and resize_target')
        boundary.printable(key[0], 'node')
        boundary.printable(key[1], 'instance_uuid', 36)
    return [(node, uuid, bool(target)) for node, uuid, target in keys]


def _text_or_none(row: Mapping[str, Any], name: str, most: int) -> str | None:
    value = row.get(name)
    return None if value is None else boundary.printable(value, name, most)


def _in_time(claim: Claim, now: datetime.datetime) -> Claim:
    """Return the claim with a creation time of ``now`` or earlier. A creation time up to a year in
    the future is replaced by ``now``, because the clock of the claim's host may be ahead.

    :raises OutOfBounds: the time is more than a year after ``now``, or more than 20 years before
    """
    if not now - _PAST <= claim.created_at <= now + _FUTURE:
        raise boundary.OutOfBounds(
            what='created_at', problem='is too far in the past or the future')
    return dataclasses.replace(claim, created_at=min(claim.created_at, now))
