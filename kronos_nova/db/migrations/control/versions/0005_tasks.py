"""The live migration tasks that conductor workers have under way."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0005'
down_revision = '0004'

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')


def upgrade():
    op.create_table(
        'tasks',
        sa.Column('migration_uuid', sa.String(36), primary_key=True),
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('worker', sa.String(255), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('beat_at', TIMESTAMP, nullable=False),
        sa.Index('tasks_worker_idx', 'worker'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
