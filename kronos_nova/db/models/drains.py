"""Drains of hosts."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class DrainRow(Base):
    """A drain of a host; see :class:`kronos_nova.drain.states.Drain`. ``avoid``, ``blocked``,
    ``to_stop`` and ``stopped`` are JSON."""

    __tablename__ = 'drains'

    uuid = sa.Column(sa.String(36), primary_key=True)
    host = sa.Column(sa.String(255), nullable=False)
    aggregate = sa.Column(sa.String(255), nullable=False)
    state = sa.Column(sa.String(16), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    reason = sa.Column(Text, nullable=False)
    with_stopped = sa.Column(sa.Boolean, nullable=False)
    parallel = sa.Column(sa.Integer)
    deadline = sa.Column(Timestamp)
    keep_spare = sa.Column(sa.Integer, nullable=False)
    avoid = sa.Column(Text, nullable=False)
    unmovable = sa.Column(sa.String(8), nullable=False, default='leave')
    to_stop = sa.Column(Text, nullable=False, default='[]')
    stopped = sa.Column(Text, nullable=False, default='{}')
    # This column is not read: the disabled reason in Nova shows which service a drain disabled.
    is_ours = sa.Column(sa.Boolean, nullable=False, default=False)
    is_unwatched = sa.Column(sa.Boolean, nullable=False, default=False)
    looked_at = sa.Column(Timestamp)
    servers = sa.Column(sa.Integer)
    left = sa.Column(sa.Integer)
    blocked = sa.Column(Text, nullable=False)
    waits_for = sa.Column(Text, nullable=False, default='')
    problem = sa.Column(Text, nullable=False)
    finished_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('drains_host_idx', 'host'), sa.Index('drains_state_idx', 'state'))
