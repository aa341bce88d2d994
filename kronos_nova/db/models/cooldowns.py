"""Tables of cooldowns, of quarantines, and of instances for which Nova refused hosts."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class CooldownRow(Base):
    """The cooldown of an aggregate or an instance until a time.

    ``scope`` is ``aggregate``, ``instance``, or ``spread`` for an aggregate's moves that spread
    load. ``name`` is the name of the aggregate or the uuid of the instance. ``times`` is the number
    of cooldowns that the aggregate or instance has had so far. ``set_at`` is the time at which
    ``until`` was written.
    """

    __tablename__ = 'cooldowns'

    scope: Mapped[str] = mapped_column(sa.String(16), primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    until: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    times: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=1)
    set_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('cooldowns_scope_until_idx', 'scope', 'until'),)


class QuarantineRow(Base):
    """An instance in quarantine, because its migration failed and is not tried again. ``until`` is
    null if only an operator can release the instance."""

    __tablename__ = 'quarantines'

    instance_uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    until: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    created_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('quarantines_until_idx', 'until'),)


class RefusalRow(Base):
    """An instance for which Nova refused some hosts. ``hosts`` is a JSON list of these hosts. The
    instance is not moved before ``until``."""

    __tablename__ = 'refusals'

    instance_uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    until: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    hosts: Mapped[str] = mapped_column(Text, nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    refused_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
