"""The SQL statements that read and write claims as rows of a table. The statements work with a
connection to any database."""

import json
import types
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kronos_nova import clock
from kronos_nova.claims.node_claims import Key
from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim

_KEY = ('host', 'node', 'instance_uuid', 'resize_target')


class ClaimTable:
    """The statements on one table of claims.

    The statements are made once, because SQLAlchemy takes longer to make a statement than SQLite
    takes to execute it.

    :param model: a class of kronos_nova.db.claim_models
    """

    def __init__(self, model: Any):
        table = model.__table__
        # A parameter with the name of a column would count as a value to set.
        is_key = sa.and_(*(table.c[name] == sa.bindparam(f'key_{name}') for name in _KEY))
        self._all = sa.select(table).order_by(table.c.id)
        self._of_host = self._all.where(table.c.host == sa.bindparam('key_host'))
        self._count = sa.select(sa.func.count()).select_from(table).where(
            table.c.host == sa.bindparam('key_host'))
        self._find = sa.select(table.c.id).where(is_key)
        self._insert = table.insert()
        self._update = table.update().where(is_key)
        self._delete = table.delete().where(is_key)
        self._delete_ids = table.delete().where(table.c.id == sa.bindparam('key_id'))

    def load(self, connection: sa.Connection, host: str) -> list[Claim]:
        """Return the claims of ``host``, in the order of their ids."""
        return [to_claim(row) for row in self._rows(connection, host)]

    def load_all_messages(self, connection: sa.Connection, most: int) -> list[dict[str, Any]]:
        """Return the first ``most`` rows of the table, in the order of their ids. The rows are of
        all hosts, and are dicts of plain values."""
        return [dict(row._mapping) for row in connection.execute(self._all.limit(most))]

    def count(self, connection: sa.Connection, host: str) -> int:
        """Return the number of claims of ``host``."""
        return connection.scalar(self._count, {'key_host': host}) or 0

    def load_all(self, connection: sa.Connection) -> list[Claim]:
        """Return the claims of all hosts, in the order of their ids."""
        return [to_claim(row) for row in connection.execute(self._all)]

    def load_messages(self, connection: sa.Connection, host: str) -> list[dict[str, Any]]:
        """Return the claims of ``host``, in the order of their ids. Each claim is a dict of plain
        values for :func:`from_message`."""
        return [dict(row._mapping) for row in self._rows(connection, host)]

    def _rows(self, connection: sa.Connection, host: str) -> Iterable[Any]:
        return connection.execute(self._of_host, {'key_host': host})

    def write(self, connection: sa.Connection, host: str, put: Iterable[Claim],
              drop: Collection[Key]) -> dict[Key, int]:
        """Insert or overwrite the claims ``put``, and remove the claims with the keys ``drop``.

        :returns: {key of a claim: id of the claim}, for the claims ``put``
        """
        if drop:
            connection.execute(self._delete, [_key(host, key) for key in drop])
        return {claim.key: self._put(connection, claim) for claim in put}

    def _put(self, connection: sa.Connection, claim: Claim) -> int:
        row, key = to_row(claim), _key(claim.host, claim.key)
        found = connection.scalar(self._find, key)
        if found is None:
            inserted: Any = connection.execute(self._insert, row).inserted_primary_key
            return inserted[0]
        connection.execute(self._update, {**row, **key})
        return found

    def remove(self, connection: sa.Connection, claims: Collection[Claim]) -> None:
        """Remove the claims that have the ids of ``claims``."""
        if claims:
            connection.execute(self._delete_ids, [{'key_id': claim.id} for claim in claims])


def _key(host: str, key: Key) -> dict[str, Any]:
    node, instance_uuid, resize_target = key
    return {'key_host': host, 'key_node': node, 'key_instance_uuid': instance_uuid,
            'key_resize_target': int(resize_target)}


def to_row(claim: Claim) -> dict[str, Any]:
    """Return the columns of a claim except its id."""
    amount = claim.amount
    return {
        'host': claim.host, 'node': claim.node, 'instance_uuid': claim.instance_uuid,
        'vcpus': amount.vcpus, 'memory_mb': amount.memory_mb, 'disk_gb': amount.disk_gb,
        'pci': json.dumps(amount.pci), 'numa_topology': amount.numa_topology,
        'resize_target': int(claim.resize_target), 'created_at': claim.created_at.isoformat(),
        'state': claim.state, 'migration_uuid': claim.migration_uuid}


def to_claim(row: Any) -> Claim:
    """Make a Claim from an object with the columns as attributes."""
    return Claim(
        id=row.id, host=row.host, node=row.node, instance_uuid=row.instance_uuid,
        resize_target=bool(row.resize_target), state=row.state, migration_uuid=row.migration_uuid,
        created_at=clock.parsed(row.created_at),
        amount=Amount(vcpus=row.vcpus, memory_mb=row.memory_mb, disk_gb=row.disk_gb,
                      pci=tuple(json.loads(row.pci or '[]')), numa_topology=row.numa_topology))


def from_message(row: Mapping[str, Any]) -> Claim:
    """Make a Claim from a dict with the columns as keys."""
    return to_claim(types.SimpleNamespace(**row))
