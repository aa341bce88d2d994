"""Two tables: repairs of allocations in placement, and the migrations that conductor workers are
preparing (tasks)."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class RepairRow(Base):
    """A repair of wrong allocations in placement. ``before`` and ``after`` are the allocations of
    the repaired consumers before and after the repair, as JSON bodies of POST /allocations."""

    __tablename__ = 'repairs'

    uuid = sa.Column(sa.String(36), primary_key=True)
    kind = sa.Column(sa.String(16), nullable=False)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    evidence = sa.Column(Text, nullable=False)
    before = sa.Column(Text, nullable=False)
    after = sa.Column(Text, nullable=False)
    detail = sa.Column(Text, nullable=False, default='')
    created_at = sa.Column(Timestamp, nullable=False)
    closed_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('repairs_instance_uuid_idx', 'instance_uuid'),
                      sa.Index('repairs_created_at_idx', 'created_at'))


class TaskRow(Base):
    """A task: a migration that a conductor worker is preparing. ``beat_at`` is the time of the
    worker's last sign of life."""

    __tablename__ = 'tasks'

    migration_uuid = sa.Column(sa.String(36), primary_key=True)
    instance_uuid = sa.Column(sa.String(36), nullable=False)
    worker = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    beat_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('tasks_worker_idx', 'worker'),
                      sa.Index('tasks_state_beat_at_idx', 'state', 'beat_at'))
