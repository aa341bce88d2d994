"""Loads of hosts and of aggregates, as evaluations measured them."""

import sqlalchemy as sa

from kronos_nova.db.column_types import CompressedText
from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class ScoreRow(Base):
    """The last score of a host in a policy."""

    __tablename__ = 'scores'

    host = sa.Column(sa.String(255), primary_key=True)
    policy = sa.Column(sa.String(64), primary_key=True)
    mode = sa.Column(sa.String(16), nullable=False)
    weight = sa.Column(sa.Double, nullable=False)
    value = sa.Column(sa.Double, nullable=False)
    at = sa.Column(Timestamp, nullable=False)


class HostLoadsRow(Base):
    """The loads of an aggregate's hosts at its last evaluation; see
    :mod:`kronos_nova.objects.host_load`."""

    __tablename__ = 'host_loads'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    at = sa.Column(Timestamp, nullable=False)
    hosts = sa.Column(CompressedText, nullable=False)


class AggregateLoadStatsRow(Base):
    """Statistics of the instances' loads in an aggregate; see
    :mod:`kronos_nova.load.load_statistics`. ``body`` is JSON."""

    __tablename__ = 'habits'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    at = sa.Column(Timestamp, nullable=False)
    body = sa.Column(CompressedText, nullable=False)


class EvaluationRow(Base):
    """The measurements of one past evaluation. ``policies`` is JSON: {policy: [imbalance,
    threshold]}. ``slots`` is JSON: {flavor: number of further servers of the flavor that fitted
    into the aggregate}; null if the numbers were not computed."""

    __tablename__ = 'evaluations'

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=True)
    aggregate = sa.Column(sa.String(255), nullable=False)
    at = sa.Column(Timestamp, nullable=False)
    outcome = sa.Column(sa.String(16), nullable=False)
    policies = sa.Column(Text, nullable=False)
    slots = sa.Column(Text)

    __table_args__ = (sa.Index('evaluations_aggregate_at_idx', 'aggregate', 'at'),
                      sa.Index('evaluations_at_idx', 'at'))
