"""Holds, which keep room for new servers."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class HoldRow(Base):
    """A hold, which keeps room on hosts for new servers; see
    :class:`kronos_nova.objects.hold.Hold`. ``shape``, ``hosts``, ``known``, ``used`` and
    ``consumers`` are JSON."""

    __tablename__ = 'holds'

    uuid = sa.Column(sa.String(36), primary_key=True)
    aggregate = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    shape = sa.Column(Text, nullable=False)
    count = sa.Column(sa.Integer, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    availability_zone = sa.Column(sa.String(255), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    reason = sa.Column(Text, nullable=False)
    hold_seconds = sa.Column(sa.Integer, nullable=False)
    is_forced = sa.Column(sa.Boolean, nullable=False)
    expires_at = sa.Column(Timestamp, nullable=False)
    moves = sa.Column(sa.Integer, nullable=False)
    memory_mb = sa.Column(sa.Integer, nullable=False)
    hosts = sa.Column(Text, nullable=False)
    known = sa.Column(Text, nullable=False)
    used = sa.Column(Text, nullable=False)
    plan_uuid = sa.Column(sa.String(36), nullable=False)
    plans = sa.Column(sa.Integer, nullable=False)
    keeper = sa.Column(sa.String(16), nullable=False)
    consumers = sa.Column(Text, nullable=False)
    problem = sa.Column(Text, nullable=False)
    finished_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('holds_state_idx', 'state'),)
