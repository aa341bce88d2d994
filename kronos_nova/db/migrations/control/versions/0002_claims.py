"""The claims of compute hosts that keep theirs centrally."""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'

SERVERS = ('mysql', 'mariadb', 'postgresql')
NAME = sa.Text().with_variant(sa.String(255), *SERVERS)
UUID = sa.Text().with_variant(sa.String(36), *SERVERS)
WORD = sa.Text().with_variant(sa.String(32), *SERVERS)


def upgrade():
    op.create_table(
        'claims',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('host', NAME, nullable=False),
        sa.Column('node', NAME, nullable=False),
        sa.Column('instance_uuid', UUID, nullable=False),
        sa.Column('vcpus', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('disk_gb', sa.Integer, nullable=False),
        sa.Column('pci', sa.Text),
        sa.Column('resize_target', sa.Integer, nullable=False),
        sa.Column('created_at', WORD, nullable=False),
        sa.Column('state', WORD, nullable=False, server_default='claimed'),
        sa.Column('migration_uuid', UUID),
        sa.Column('numa_topology', sa.Text),
        mysql_engine='InnoDB', mysql_charset='utf8mb4', sqlite_autoincrement=True)
    op.create_index('claims_key_idx', 'claims',
                    ['host', 'node', 'instance_uuid', 'resize_target'], unique=True)
