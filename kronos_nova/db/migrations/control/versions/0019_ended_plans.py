"""Plans that ended lately are looked for every second while somebody listens."""

from alembic import op

revision = '0019'
down_revision = '0018'


def upgrade():
    op.create_index('plans_finished_at_idx', 'plans', ['finished_at'])
