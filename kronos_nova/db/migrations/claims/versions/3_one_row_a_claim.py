"""A unique index of claims, times with their offset from UTC, ids that are never reused, and a
column for the NUMA topology.

With version 2, a claim could have two rows if nova-compute died between two writes. Only the later
of the two rows is kept.
"""

import datetime

import sqlalchemy as sa
from alembic import op

revision = '3'
down_revision = '2'

KEY = ('host', 'node', 'instance_uuid', 'resize_target')
claims = sa.table('claims', sa.column('id', sa.Integer), sa.column('created_at', sa.Text),
                  *(sa.column(name) for name in KEY))


def upgrade() -> None:
    connection = op.get_bind()
    latest = sa.select(sa.func.max(claims.c.id)).group_by(*(claims.c[name] for name in KEY))
    connection.execute(claims.delete().where(claims.c.id.not_in(latest.scalar_subquery())))
    for row in connection.execute(sa.select(claims.c.id, claims.c.created_at)).all():
        connection.execute(claims.update().where(claims.c.id == row.id).values(
            created_at=_with_offset(row.created_at)))
    with op.batch_alter_table('claims', recreate='always',
                              table_kwargs={'sqlite_autoincrement': True}) as table:
        table.add_column(sa.Column('numa_topology', sa.Text))
        table.create_index('claims_key_idx', KEY, unique=True)


def _with_offset(text: str) -> str:
    """Return a time with an offset from UTC. Earlier versions stored times in UTC without an
    offset."""
    moment = datetime.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).isoformat()
