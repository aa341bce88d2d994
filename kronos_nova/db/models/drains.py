"""Drains of hosts."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class DrainRow(Base):
    """A drain of a host; see :class:`kronos_nova.drain.states.Drain`. ``avoid``, ``blocked``,
    ``to_stop`` and ``stopped`` are JSON."""

    __tablename__ = 'drains'

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    host: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    requested_by: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    requested_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    with_stopped: Mapped[bool] = mapped_column(sa.Boolean, nullable=False)
    parallel: Mapped[int | None] = mapped_column(sa.Integer)
    deadline: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    keep_spare: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    avoid: Mapped[str] = mapped_column(Text, nullable=False)
    unmovable: Mapped[str] = mapped_column(sa.String(8), nullable=False, default='leave')
    to_stop: Mapped[str] = mapped_column(Text, nullable=False, default='[]')
    stopped: Mapped[str] = mapped_column(Text, nullable=False, default='{}')
    # This column is not read: the disabled reason in Nova shows which service a drain disabled.
    is_ours: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, default=False)
    is_unwatched: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, default=False)
    looked_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    servers: Mapped[int | None] = mapped_column(sa.Integer)
    left: Mapped[int | None] = mapped_column(sa.Integer)
    blocked: Mapped[str] = mapped_column(Text, nullable=False)
    waits_for: Mapped[str] = mapped_column(Text, nullable=False, default='')
    waits_in_vain: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, default=False)
    problem: Mapped[str] = mapped_column(Text, nullable=False)
    finished_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('drains_host_idx', 'host'), sa.Index('drains_state_idx', 'state'))
