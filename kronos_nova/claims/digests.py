"""Checksums of the rows of a claims file.

SQLite has no checksums of its own. If a bit flips in the number of vCPUs of a claim, the result is
another valid number. Only a checksum reveals such an error. The table ``claim_digests`` is separate
from the table of claims, so that other programs can still read and write the claims. A claim
without a checksum is accepted, because another program may have written it.
"""

import hashlib
import json
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

_COLUMNS = ('id', 'host', 'node', 'instance_uuid', 'vcpus', 'memory_mb', 'disk_gb', 'pci',
            'resize_target', 'state', 'migration_uuid', 'numa_topology')
"""Columns that the checksum covers. ``created_at`` is not covered, because an operator may change
this time. The time determines only how long a claim without an instance or migration is kept."""

table = sa.Table(
    'claim_digests', sa.MetaData(),
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('digest', sa.Text, nullable=False))

_SELECT = sa.select(table)
_INSERT = table.insert().prefix_with('OR REPLACE')
_PRUNE = sa.text('DELETE FROM claim_digests WHERE id NOT IN (SELECT id FROM claims)')


def digest(row: Mapping[str, Any]) -> str:
    """Return the checksum of a row, a mapping of column to value."""
    values = json.dumps([row.get(name) for name in _COLUMNS], default=repr)
    return hashlib.blake2b(values.encode(), digest_size=16).hexdigest()


def create(connection: sa.Connection) -> None:
    """Create the table of checksums if the file does not have it."""
    table.create(connection, checkfirst=True)


def load(connection: sa.Connection) -> dict[int, str]:
    """Return ``{id of a claim: its checksum}``."""
    return dict(connection.execute(_SELECT).tuples().all())


def write(connection: sa.Connection, rows: Collection[Mapping[str, Any]]) -> None:
    """Record the checksums of ``rows``."""
    if rows:
        connection.execute(_INSERT, [{'id': row['id'], 'digest': digest(row)} for row in rows])


def prune(connection: sa.Connection) -> None:
    """Remove the checksums of claims that were removed."""
    connection.execute(_PRUNE)
