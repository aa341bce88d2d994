"""Claims as rows: reading and writing them on a connection, whichever database it is of."""

import datetime
import json
import types

import sqlalchemy as sa

from kronos_nova.objects.claim import Amount
from kronos_nova.objects.claim import Claim


def load(connection, table, host):
    """The claims of ``host``, by id.

    :param table: the Table of a class of kronos_nova.db.claim_models
    """
    return [to_claim(row) for row in _rows(connection, table, host)]


def load_all(connection, table):
    """The claims of every host, by id."""
    return [to_claim(row) for row in connection.execute(sa.select(table).order_by(table.c.id))]


def load_messages(connection, table, host):
    """The same as dicts of plain values; :func:`from_message` takes them."""
    return [dict(row._mapping) for row in _rows(connection, table, host)]


def _rows(connection, table, host):
    return connection.execute(sa.select(table).where(table.c.host == host).order_by(table.c.id))


def write(connection, table, host, put, drop):
    """Insert or overwrite ``put``, remove the keys ``drop``.

    :returns: {key: id} of ``put``
    """
    for key in drop:
        connection.execute(table.delete().where(*_is(table, host, key)))
    return {claim.key: _put(connection, table, claim) for claim in put}


def _put(connection, table, claim):
    here = _is(table, claim.host, claim.key)
    found = connection.scalar(sa.select(table.c.id).where(*here))
    if found is None:
        return connection.execute(table.insert().values(to_row(claim))).inserted_primary_key[0]
    connection.execute(table.update().where(*here).values(to_row(claim)))
    return found


def _is(table, host, key):
    node, instance_uuid, resize_target = key
    return (table.c.host == host, table.c.node == node, table.c.instance_uuid == instance_uuid,
            table.c.resize_target == int(resize_target))


def to_row(claim):
    """The columns of a claim but its id."""
    amount = claim.amount
    return {
        'host': claim.host, 'node': claim.node, 'instance_uuid': claim.instance_uuid,
        'vcpus': amount.vcpus, 'memory_mb': amount.memory_mb, 'disk_gb': amount.disk_gb,
        'pci': json.dumps(amount.pci), 'numa_topology': amount.numa_topology,
        'resize_target': int(claim.resize_target), 'created_at': claim.created_at.isoformat(),
        'state': claim.state, 'migration_uuid': claim.migration_uuid}


def to_claim(row):
    """A claim of anything with the columns as attributes."""
    created_at = datetime.datetime.fromisoformat(row.created_at)
    return Claim(
        id=row.id, host=row.host, node=row.node, instance_uuid=row.instance_uuid,
        resize_target=bool(row.resize_target), state=row.state, migration_uuid=row.migration_uuid,
        created_at=created_at if created_at.tzinfo else created_at.replace(tzinfo=datetime.UTC),
        amount=Amount(vcpus=row.vcpus, memory_mb=row.memory_mb, disk_gb=row.disk_gb,
                      pci=tuple(json.loads(row.pci or '[]')), numa_topology=row.numa_topology))


def from_message(row):
    """A claim of a dict with the columns as keys."""
    return to_claim(types.SimpleNamespace(**row))
