"""What evaluations measured, for those who watch."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0020'
down_revision = '0019'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
BLOB = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'host_loads',
        sa.Column('aggregate', sa.String(255), primary_key=True),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('hosts', BLOB, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    op.create_table(
        'evaluations',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
        sa.Column('aggregate', sa.String(255), nullable=False),
        sa.Column('at', TIMESTAMP, nullable=False),
        sa.Column('outcome', sa.String(16), nullable=False),
        sa.Column('policies', TEXT, nullable=False),
        sa.Index('evaluations_aggregate_at_idx', 'aggregate', 'at'),
        sa.Index('evaluations_at_idx', 'at'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
