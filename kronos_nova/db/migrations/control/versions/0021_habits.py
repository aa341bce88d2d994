"""What is known of the loads of instances."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0021'
down_revision = '0020'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
BLOB = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'habits',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('body', BLOB, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
