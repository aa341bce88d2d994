"""Which levels and pauses are in the log already."""

import sqlalchemy as sa
from alembic import op

revision = '0014'
down_revision = '0013'


def upgrade():
    # A command of the release before says nothing of it, and its switches are told by nobody.
    op.add_column('switch_events', sa.Column('told', sa.Boolean(), nullable=False,
                                             server_default=sa.true()))
