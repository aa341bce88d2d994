"""neutron's own WSGI application, its mappers configured before many threads do it at once."""

import sqlalchemy.orm
from neutron.wsgi.api import application

sqlalchemy.orm.configure_mappers()

__all__ = ['application']
