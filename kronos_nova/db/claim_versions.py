"""The version of the format of a claims file. The version is stored in the only row of the table
``claim_versions``.

Programs that read claims check this version. Alembic stores its own revision in another table,
which is used only for upgrades. An upgrade changes both tables in one transaction.
"""

from typing import Any

import sqlalchemy as sa

TABLE_NAME = 'claims'

table = sa.Table(
    'claim_versions', sa.MetaData(),
    sa.Column('table_name', sa.String(64), primary_key=True),
    sa.Column('version', sa.Integer, nullable=False))


def read(connection: sa.Connection) -> str | None:
    """Return the recorded version; None if no version is recorded. A version is the name of a
    revision."""
    if not sa.inspect(connection).has_table(table.name):
        return None
    version = connection.scalar(sa.select(table.c.version).where(table.c.table_name == TABLE_NAME))
    return None if version is None else str(version)


def record(*, ctx: Any, step: Any, **_kwargs: object) -> None:
    """Record the version that a database has after an upgrade step.

    Alembic calls this function as its ``on_version_apply``. Alembic's command ``stamp`` also calls
    it, but changes only alembic's own table. The function then does nothing, and ``claim_versions``
    is not changed.
    """
    if step.is_stamp:
        return
    table.create(ctx.connection, checkfirst=True)
    ctx.connection.execute(table.delete())
    ctx.connection.execute(
        table.insert().values(table_name=TABLE_NAME, version=int(step.up_revision_id)))
