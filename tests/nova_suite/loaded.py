"""Kronos in the services of Nova's own tests, as an operator would load it.

Nova's fixtures are the place where nova.conf is: to what they set, this adds the driver line, a
control database and a file of claims of its own for every test, and in ``[placement]`` where that
test's placement service is. Everything else is Kronos as installed.
"""

import pathlib

import fixtures
import nova.conf
from keystoneauth1 import loading
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import fixtures as functional_fixtures
from oslo_messaging import conffixture

from kronos_nova import conf as kronos_conf
from kronos_nova.plugin import conductor
from kronos_nova.plugin import placement
from tests.unit.db import fixtures as db_fixtures


def load():
    """Let every test of this process from now on run with Kronos."""
    _extend(nova_fixtures.ConfFixture, _configure)
    _extend(functional_fixtures.PlacementFixture, _show_placement)


def _extend(fixture_class, more):
    real = fixture_class.setUp

    def set_up(this):
        real(this)
        more(this)

    fixture_class.setUp = set_up


def _configure(fixture):
    kronos_conf.register_opts(fixture.conf)
    # Registers what the driver line is in; the fixture that Nova has for that comes too late.
    fixture.useFixture(conffixture.ConfFixture(fixture.conf))
    fixture.config(driver=['test', 'kronos'], group='oslo_messaging_notifications')
    # There is no Prometheus to plan by.
    fixture.config(automation='off', group='kronos')
    database = fixture.useFixture(db_fixtures.ControlDatabase()).database
    fixture.config(connection=str(database.engine.url), group='kronos_database')
    directory = fixture.useFixture(fixtures.TempDir()).path
    fixture.config(claim_db=str(pathlib.Path(directory, 'claim.sqlite')), group='kronos_claims')
    for cached in (conductor._database, conductor._impatient_database, conductor._tasks,
                       placement.client):
        cached.cache_clear()
        fixture.addCleanup(cached.cache_clear)


def _show_placement(fixture):
    conf = nova.conf.CONF
    for option in loading.get_auth_plugin_conf_options('admin_token'):
        conf.register_opt(option, 'placement')
    # Tests end such a fixture in their middle, and Nova's configuration outlives it.
    for name, value in (('auth_type', 'admin_token'), ('endpoint', fixture.endpoint),
                        ('token', fixture.token)):
        conf.set_override(name, value, group='placement')
        fixture.addCleanup(conf.clear_override, name, group='placement')
