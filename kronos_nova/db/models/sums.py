"""Sums of loads and moves by day."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.models.base import Base


class LoadSumRow(Base):
    """Sums of the load of an aggregate's hosts in one day (UTC); see
    :class:`kronos_nova.db.sums.LoadSum`."""

    __tablename__ = 'load_sums'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    day: Mapped[datetime.date] = mapped_column(sa.Date, nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    observed_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False)
    hot_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False)
    contended_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False)
    replayed_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False, default=0.0)
    unmoved_hot_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False, default=0.0)
    unmoved_contended_seconds: Mapped[float] = mapped_column(sa.Double, nullable=False, default=0.0)

    __table_args__ = (sa.Index('load_sums_day_aggregate_idx', 'day', 'aggregate', unique=True),)


class MoveSumRow(Base):
    """Sums of the moves that ended on one day (UTC) and were deleted from the journal; see
    :class:`kronos_nova.db.sums.MoveSum`. ``project_id`` is empty if the project was not known."""

    __tablename__ = 'move_sums'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    day: Mapped[datetime.date] = mapped_column(sa.Date, nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    project_id: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    completed: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    failed: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    abandoned: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    memory_mb: Mapped[int] = mapped_column(sa.BigInteger, nullable=False)
    seconds: Mapped[float] = mapped_column(sa.Double, nullable=False)

    __table_args__ = (sa.Index('move_sums_key_idx', 'day', 'aggregate', 'project_id',
                               unique=True),)
