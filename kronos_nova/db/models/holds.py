"""Holds, which keep room for new servers."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class HoldRow(Base):
    """A hold, which keeps room on hosts for new servers; see
    :class:`kronos_nova.objects.hold.Hold`. ``shape``, ``hosts``, ``known``, ``used`` and
    ``consumers`` are JSON."""

    __tablename__ = 'holds'

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    shape: Mapped[str] = mapped_column(Text, nullable=False)
    count: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    project_id: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    availability_zone: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    requested_by: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    requested_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    hold_seconds: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    is_forced: Mapped[bool] = mapped_column(sa.Boolean, nullable=False)
    expires_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    moves: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    memory_mb: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    hosts: Mapped[str] = mapped_column(Text, nullable=False)
    known: Mapped[str] = mapped_column(Text, nullable=False)
    used: Mapped[str] = mapped_column(Text, nullable=False)
    plan_uuid: Mapped[str] = mapped_column(sa.String(36), nullable=False)
    plans: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    keeper: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    consumers: Mapped[str] = mapped_column(Text, nullable=False)
    problem: Mapped[str] = mapped_column(Text, nullable=False)
    finished_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('holds_state_idx', 'state'),)
