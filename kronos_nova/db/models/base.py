"""Base class of the tables of the control database."""

from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass
