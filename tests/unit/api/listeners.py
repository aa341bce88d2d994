"""Listeners to the events of a kronos-api, over HTTP."""

import collections
import http.client
import json
import time
import urllib.parse

from tests.unit.api import base

LONGEST_SECONDS = 60
"""For anything that is waited for; heartbeats keep a connection alive."""

Event = collections.namedtuple('Event', 'kind data id')


class Listener:
    """
    :param url: of the kronos-api
    :param last_id: of the last event, where it listened before
    """

    def __init__(self, url, last_id=None, token=base.READER, timeout=30):
        self.connection = http.client.HTTPConnection(
            urllib.parse.urlsplit(url).netloc, timeout=timeout)
        self.connection.request('GET', '/v1/events', headers={
            'X-Auth-Token': token, **({'Last-Event-ID': last_id} if last_id else {})})
        self.answer = self.connection.getresponse()
        self.lines = []

    def events(self):
        """Each Event as it comes, until the server ends the stream; comments among them."""
        found, deadline = {}, time.monotonic() + LONGEST_SECONDS
        for raw in self.answer:
            if time.monotonic() > deadline:
                raise AssertionError(f'nothing but {self.lines[-20:]}')
            line = raw.decode().rstrip('\n')
            self.lines.append(line)
            name, _colon, value = line.partition(': ')
            if line:
                found[name] = value
            elif 'event' in found:
                yield Event(found['event'], json.loads(found['data']), found.get('id'))
                found = {}

    def until(self, kind, **data):
        """Events up to and with the first of a kind whose data has that."""
        taken = []
        for event in self.events():
            taken.append(event)
            if event.kind == kind and data.items() <= event.data.items():
                return taken
        raise AssertionError(f'no {kind} {data} among {taken}')

    def close(self):
        self.answer.close()
        self.connection.close()
