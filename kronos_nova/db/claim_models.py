"""The table of claims. It is in the claims file of each compute host, and in the control
database."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

from kronos_nova.db import models

# MySQL has no default and no index for TEXT without a length.
_SERVERS = ('mysql', 'mariadb', 'postgresql')
Name = sa.Text().with_variant(sa.String(255), *_SERVERS)
Uuid = sa.Text().with_variant(sa.String(36), *_SERVERS)
Word = sa.Text().with_variant(sa.String(32), *_SERVERS)


class ClaimColumns:
    """Columns of the table of claims.

    ``pci`` is a JSON list of PCI addresses. ``created_at`` is a time in ISO 8601 format, with its
    offset from UTC.
    """

    __tablename__ = 'claims'

    id: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=True)
    host: Mapped[str] = mapped_column(Name, nullable=False)
    node: Mapped[str] = mapped_column(Name, nullable=False)
    instance_uuid: Mapped[str] = mapped_column(Uuid, nullable=False)
    vcpus: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    memory_mb: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    disk_gb: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    pci: Mapped[str | None] = mapped_column(sa.Text)
    resize_target: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    created_at: Mapped[str] = mapped_column(Word, nullable=False)
    state: Mapped[str] = mapped_column(Word, nullable=False, server_default='claimed')
    migration_uuid: Mapped[str | None] = mapped_column(Uuid)
    numa_topology: Mapped[str | None] = mapped_column(sa.Text)

    @orm.declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:
        return (sa.Index('claims_key_idx', 'host', 'node', 'instance_uuid', 'resize_target',
                         unique=True),
                # Ids are not reused, so that a late "abort" does not release another claim.
                {'sqlite_autoincrement': True})


class LocalBase(orm.DeclarativeBase):
    pass


class LocalClaim(ClaimColumns, LocalBase):
    """A claim in the claims file of the compute host on which the resources are."""


class CentralClaim(ClaimColumns, models.Base):
    """A claim in the control database. Compute hosts with the claim store ``central`` keep their
    claims there."""
