"""What the processes do that say that they live."""

import sqlalchemy as sa
from alembic import op

revision = '0009'
down_revision = '0008'


def upgrade():
    op.add_column('workers', sa.Column('role', sa.String(16), nullable=False,
                                       server_default='executor'))
