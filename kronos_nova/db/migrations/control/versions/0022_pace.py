"""In which order moves begin, and what each was expected to be like."""

import sqlalchemy as sa
from alembic import op

revision = '0022'
down_revision = '0021'


def upgrade():
    for column in (sa.Column('position', sa.Integer, nullable=False, server_default='0'),
                   sa.Column('expected_seconds', sa.Double),
                   sa.Column('expected_downtime', sa.Double),
                   sa.Column('memory_processed', sa.BigInteger)):
        op.add_column('moves', column)
