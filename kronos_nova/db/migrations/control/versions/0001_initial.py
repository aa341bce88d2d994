"""The first tables of the control database."""

revision = '0001'
down_revision = None


def upgrade():
    pass
