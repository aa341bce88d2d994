"""Tables of switches, which are levels and pauses that commands set."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class _Switched:
    """Columns of a level or a pause that a command set. The level or pause is for one aggregate, or
    for every aggregate (``*``)."""

    value: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    set_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    set_by: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)


class SwitchRow(_Switched, Base):
    """A level or a pause in force. An aggregate has at most one level, at most one level for
    repairs, and any number of pauses."""

    __tablename__ = 'switches'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    kind: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)


class SwitchEventRow(_Switched, Base):
    """The record of one change of a switch (a level or a pause). ``value`` is the new value; empty
    if the switch ended. The boolean column is true if a service has already written the change to
    its log.
    """

    __tablename__ = 'switch_events'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    kind: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    aggregate: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    told: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, server_default=sa.true())
