"""Moves that are read a page at a time."""

from alembic import op

revision = '0018'
down_revision = '0017'


def upgrade():
    op.create_index('moves_created_at_idx', 'moves', ['created_at'])
