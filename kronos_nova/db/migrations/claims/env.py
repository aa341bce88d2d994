from alembic import context

from kronos_nova.db import migrate

migrate.run(context)
