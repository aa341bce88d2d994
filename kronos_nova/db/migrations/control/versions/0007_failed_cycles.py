"""How often in a row the evaluation of an aggregate did not end, and when the next may begin."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0007'
down_revision = '0006'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')


def upgrade():
    op.add_column('cycles', sa.Column('failures', sa.Integer, nullable=False, server_default='0'))
    op.add_column('cycles', sa.Column('not_before', TIMESTAMP))
