"""Two tables: repairs of allocations in placement, and the migrations that conductor workers are
preparing (tasks)."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class RepairRow(Base):
    """A repair of wrong allocations in placement. ``before`` and ``after`` are the allocations of
    the repaired consumers before and after the repair, as JSON bodies of POST /allocations."""

    __tablename__ = 'repairs'

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    kind: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    instance_uuid: Mapped[str] = mapped_column(sa.String(36), nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    evidence: Mapped[str] = mapped_column(Text, nullable=False)
    before: Mapped[str] = mapped_column(Text, nullable=False)
    after: Mapped[str] = mapped_column(Text, nullable=False)
    detail: Mapped[str] = mapped_column(Text, nullable=False, default='')
    created_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    closed_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('repairs_instance_uuid_idx', 'instance_uuid'),
                      sa.Index('repairs_created_at_idx', 'created_at'))


class TaskRow(Base):
    """A task: a migration that a conductor worker is preparing. ``beat_at`` is the time of the
    worker's last sign of life."""

    __tablename__ = 'tasks'

    migration_uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    instance_uuid: Mapped[str] = mapped_column(sa.String(36), nullable=False)
    worker: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    beat_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('tasks_worker_idx', 'worker'),
                      sa.Index('tasks_state_beat_at_idx', 'state', 'beat_at'))
