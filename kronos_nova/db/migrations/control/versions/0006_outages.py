"""Whether the last try of a move ended because something did not answer."""

import sqlalchemy as sa
from alembic import op

revision = '0006'
down_revision = '0005'


def upgrade():
    op.add_column('moves', sa.Column('outage', sa.Boolean, nullable=False,
                                     server_default=sa.false()))
