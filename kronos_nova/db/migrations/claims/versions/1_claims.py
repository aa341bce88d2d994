"""The table of claims of a compute node."""

import sqlalchemy as sa
from alembic import op

revision = '1'
down_revision = None


def upgrade() -> None:
    op.create_table(
        'claims',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('host', sa.Text, nullable=False),
        sa.Column('node', sa.Text, nullable=False),
        sa.Column('instance_uuid', sa.Text, nullable=False),
        sa.Column('vcpus', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('disk_gb', sa.Integer, nullable=False),
        sa.Column('pci', sa.Text),
        sa.Column('resize_target', sa.Integer, nullable=False),
        sa.Column('created_at', sa.Text, nullable=False))
