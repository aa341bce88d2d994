"""Whose instances are moved, and because of whose load."""

import sqlalchemy as sa
from alembic import op

revision = '0016'
down_revision = '0015'


def upgrade():
    op.add_column('moves', sa.Column('project_id', sa.String(255)))
    op.add_column('moves', sa.Column('caused_by', sa.String(36)))
    op.create_index('moves_checked_at_idx', 'moves', ['checked_at'])
