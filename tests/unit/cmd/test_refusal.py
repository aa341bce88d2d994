"""``kronos-manage refusal list``."""

import datetime
import json

from kronos_nova import clock
from kronos_nova.db import refusals
from kronos_nova.db import server_names
from kronos_nova.objects.plan import Refusal
from tests.unit.cmd import test_automation


class RefusalsTest(test_automation.OperatorTestCase):
    def test_servers_have_names_and_times_have_zones(self):
        now = clock.utcnow()
        server_names.ServerNames(self.database).save({'vm1': 'web'}, now)
        refusals.Refusals(self.database).rest(
            [Refusal(instance_uuid='vm1', hosts=('a', 'b', 'c'), reason='No valid host')], 600, now)
        self.assertIn('| vm1      | web  |', self.manage('refusal', 'list'))
        [found] = json.loads(self.manage('refusal', 'list', '-f', 'json'))
        self.assertEqual('web', found['Name'])
        until = datetime.datetime.fromisoformat(found['Rests until'])
        self.assertEqual((datetime.timedelta(), 'a, b, c'), (until.utcoffset(), found['Hosts']))
