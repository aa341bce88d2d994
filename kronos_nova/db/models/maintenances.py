"""Rolling maintenances."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class MaintenanceRow(Base):
    """A rolling maintenance; see :class:`kronos_nova.objects.maintenance.Maintenance`. ``options``
    and ``hosts`` are JSON. ``hosts`` is a list of pairs of host and state, in the order in which
    the hosts are serviced."""

    __tablename__ = 'maintenances'

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    state: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    requested_by: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    requested_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    options: Mapped[str] = mapped_column(Text, nullable=False)
    hosts: Mapped[str] = mapped_column(Text, nullable=False)
    runner: Mapped[str | None] = mapped_column(sa.String(255))
    runner_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)

    __table_args__ = (sa.Index('maintenances_state_idx', 'state'),)
