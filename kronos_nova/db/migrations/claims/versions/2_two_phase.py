"""Columns for claims that are prepared before a move. PCI devices are stored as JSON."""

import json

import sqlalchemy as sa
from alembic import op

revision = '2'
down_revision = '1'

claims = sa.table('claims', sa.column('id', sa.Integer), sa.column('pci', sa.Text))


def upgrade() -> None:
    with op.batch_alter_table('claims') as table:
        table.add_column(sa.Column('state', sa.Text, nullable=False, server_default='claimed'))
        table.add_column(sa.Column('migration_uuid', sa.Text))
    connection = op.get_bind()
    for row in connection.execute(sa.select(claims)).all():
        addresses = [address for address in (row.pci or '').split(',') if address]
        connection.execute(claims.update().where(claims.c.id == row.id).values(
            pci=json.dumps(addresses)))
