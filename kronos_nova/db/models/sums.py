"""Sums of loads and moves by day."""

import sqlalchemy as sa

from kronos_nova.db.models.base import Base


class LoadSumRow(Base):
    """Sums of the load of an aggregate's hosts in one day (UTC); see
    :class:`kronos_nova.db.sums.LoadSum`."""

    __tablename__ = 'load_sums'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    day = sa.Column(sa.Date, nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    observed_seconds = sa.Column(sa.Double, nullable=False)
    hot_seconds = sa.Column(sa.Double, nullable=False)
    contended_seconds = sa.Column(sa.Double, nullable=False)
    replayed_seconds = sa.Column(sa.Double, nullable=False, default=0.0)
    unmoved_hot_seconds = sa.Column(sa.Double, nullable=False, default=0.0)
    unmoved_contended_seconds = sa.Column(sa.Double, nullable=False, default=0.0)

    __table_args__ = (sa.Index('load_sums_day_aggregate_idx', 'day', 'aggregate', unique=True),)


class MoveSumRow(Base):
    """Sums of the moves that ended on one day (UTC) and were deleted from the journal; see
    :class:`kronos_nova.db.sums.MoveSum`. ``project_id`` is empty if the project was not known."""

    __tablename__ = 'move_sums'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    day = sa.Column(sa.Date, nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    completed = sa.Column(sa.Integer, nullable=False)
    failed = sa.Column(sa.Integer, nullable=False)
    abandoned = sa.Column(sa.Integer, nullable=False)
    memory_mb = sa.Column(sa.BigInteger, nullable=False)
    seconds = sa.Column(sa.Double, nullable=False)

    __table_args__ = (sa.Index('move_sums_key_idx', 'day', 'aggregate', 'project_id',
                               unique=True),)
