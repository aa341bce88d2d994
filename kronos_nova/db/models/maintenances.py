"""Rolling maintenances."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class MaintenanceRow(Base):
    """A rolling maintenance; see :class:`kronos_nova.objects.maintenance.Maintenance`. ``options``
    and ``hosts`` are JSON. ``hosts`` is a list of pairs of host and state, in the order in which
    the hosts are serviced."""

    __tablename__ = 'maintenances'

    uuid = sa.Column(sa.String(36), primary_key=True)
    state = sa.Column(sa.String(16), nullable=False)
    requested_by = sa.Column(sa.String(255), nullable=False)
    requested_at = sa.Column(Timestamp, nullable=False)
    options = sa.Column(Text, nullable=False)
    hosts = sa.Column(Text, nullable=False)
    runner = sa.Column(sa.String(255))
    runner_at = sa.Column(Timestamp)

    __table_args__ = (sa.Index('maintenances_state_idx', 'state'),)
