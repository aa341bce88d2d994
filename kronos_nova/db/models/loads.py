"""Loads of hosts and of aggregates, as evaluations measured them."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import CompressedText
from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class ScoreRow(Base):
    """The last score of a host in a policy."""

    __tablename__ = 'scores'

    host: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    policy: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    mode: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    weight: Mapped[float] = mapped_column(sa.Double, nullable=False)
    value: Mapped[float] = mapped_column(sa.Double, nullable=False)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)


class HostLoadsRow(Base):
    """The loads of an aggregate's hosts at its last evaluation; see
    :mod:`kronos_nova.objects.host_load`."""

    __tablename__ = 'host_loads'

    aggregate: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    hosts: Mapped[str] = mapped_column(CompressedText, nullable=False)


class AggregateLoadStatsRow(Base):
    """Statistics of the instances' loads in an aggregate; see
    :mod:`kronos_nova.load.load_statistics`. ``body`` is JSON."""

    __tablename__ = 'habits'

    aggregate: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    body: Mapped[str] = mapped_column(CompressedText, nullable=False)


class EvaluationRow(Base):
    """The measurements of one past evaluation. ``policies`` is JSON: {policy: [imbalance,
    threshold]}. ``slots`` is JSON: {flavor: number of further servers of the flavor that fitted
    into the aggregate}; null if the numbers were not computed."""

    __tablename__ = 'evaluations'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    outcome: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    policies: Mapped[str] = mapped_column(Text, nullable=False)
    slots: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (sa.Index('evaluations_aggregate_at_idx', 'aggregate', 'at'),
                      sa.Index('evaluations_at_idx', 'at'))
