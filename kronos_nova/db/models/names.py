"""Names of servers."""

import sqlalchemy as sa

from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class ServerNameRow(Base):
    """The name of a server, and the aggregate in which it was last evaluated. ``seen_at`` is the
    time at which the name was last read from Nova."""

    __tablename__ = 'server_names'

    uuid = sa.Column(sa.String(36), primary_key=True)
    name = sa.Column(sa.String(255), nullable=False)
    aggregate = sa.Column(sa.String(255))
    seen_at = sa.Column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('server_names_seen_at_idx', 'seen_at'),)
