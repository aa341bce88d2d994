"""Names of servers."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class ServerNameRow(Base):
    """The name of a server, and the aggregate in which it was last evaluated. ``seen_at`` is the
    time at which the name was last read from Nova."""

    __tablename__ = 'server_names'

    uuid: Mapped[str] = mapped_column(sa.String(36), primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    aggregate: Mapped[str | None] = mapped_column(sa.String(255))
    seen_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)

    __table_args__ = (sa.Index('server_names_seen_at_idx', 'seen_at'),)
