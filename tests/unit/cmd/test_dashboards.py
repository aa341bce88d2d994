"""The dashboards are what Grafana's own schema says."""

import json
import re

import testtools
from grafana_foundation_sdk.cog import encoder
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.models import dashboard

from tools import dashboards


def lost(given, kept, path=''):
    """Return where something of ``given`` is not, or not the same, in what ``kept`` has of it."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name in kept or value is not None:
                yield from lost(value, kept.get(name), f'{path}.{name}')
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f'{path}[{number}]')
    elif given != kept:
        yield path


def unknown(given):
    """Paths in a dashboard that Grafana's models have no place for, or not for such a value."""
    plugins.register_default_plugins()
    read = dashboard.Dashboard.from_json(given)
    return [*lost(given, json.loads(json.dumps(read, cls=encoder.JSONEncoder)))]


class SchemaTest(testtools.TestCase):
    def test_grafana_knows_all_that_is_in_the_dashboards(self):
        self.assertGreater(len(dashboards.written()), 1)
        for name, text in dashboards.written().items():
            self.assertEqual([], unknown(json.loads(text)), name)

    def test_what_it_does_not_know_is_found(self):
        text = dashboards.written()['kronos-fleet.json']
        for old, new, path in (('"gridPos"', '"gridPosition"', '.panels[0].gridPosition'),
                               ('"expr"', '"expression"', '.panels[0].targets[0].expression'),
                               ('"graphMode"', '"grafMode"', '.panels[0].options.grafMode')):
            self.assertIn(path, unknown(json.loads(re.sub(old, new, text))))
