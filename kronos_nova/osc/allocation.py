"""The commands ``openstack allocation``. The commands replace the allocations of several consumers
at once, and show the allocations of a server and of its migrations."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from cliff import lister
from osc_lib import exceptions

from kronos_nova import exception
from kronos_nova.objects.nova_facts import COMPUTE_MIGRATIONS
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.allocations import Consumer
from kronos_nova.placement.client import PlacementClient

Table = tuple[Sequence[str], Iterable[tuple[str, ...]]]
"""Names of columns, and rows."""


class Replace(lister.Lister):
    """Replace the allocations of several consumers in one transaction: either all of them change or
    none.

    The file has the JSON body of placement's POST /allocations: {uuid of a consumer:
    {"allocations": its new allocations}}. A consumer with empty allocations is removed. If
    "consumer_generation", "project_id", "user_id" or "consumer_type" of a consumer is left out, the
    present value in placement is used. With the "consumer_generation" that you read before, the
    request is refused if the consumer has changed since then.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--file', required=True, metavar='<file>',
                            help='File with the JSON body of POST /allocations; "-" reads the '
                                 'body from standard input.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        client = self.app.client_manager.kronos
        body = _load(parsed_args.file)
        try:
            wanted = AllocationSet(tuple(
                _completed(uuid, held, client.consumer(uuid)) for uuid, held in body.items()))
            client.post(wanted)
        except exception.PlacementError as error:
            raise exceptions.CommandError(str(error)) from error
        try:
            return _rows((('', '', client.consumer(uuid)) for uuid in body), client)
        except exception.PlacementError as error:
            raise exceptions.CommandError('The allocations were replaced, but cannot be shown: '
                                          f'{error}') from error


class ShowMove(lister.Lister):
    """Show the allocations of a server and of its migrations."""

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('server', metavar='<server>', help='Name or uuid of the server.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        compute = self.app.client_manager.sdk_connection.compute
        client = self.app.client_manager.kronos
        server = compute.find_server(parsed_args.server, ignore_missing=False,
                                     all_projects=True)
        answer = compute.get('/os-migrations', params={'instance_uuid': server.id},
                             microversion=COMPUTE_MIGRATIONS)
        if answer.status_code != 200:
            raise exceptions.CommandError(
                f'Nova does not list the migrations of {server.id}: HTTP {answer.status_code}')
        found = [('instance', server.status, server.id)]
        found += [(each['migration_type'], each['status'], each['uuid'])
                  for each in answer.json()['migrations']]
        try:
            return _rows(((role, status, client.consumer(uuid)) for role, status, uuid in found),
                         client)
        except exception.PlacementError as error:
            raise exceptions.CommandError(str(error)) from error


def _load(path: str) -> dict[str, dict[str, Any]]:
    try:
        if path == '-':
            body = json.load(sys.stdin)
        else:
            with open(path) as file:
                body = json.load(file)
    except (OSError, ValueError) as error:
        raise exceptions.CommandError(f'{path}: {error}') from error
    if not isinstance(body, dict) or not all(
            isinstance(held, dict) and 'allocations' in held for held in body.values()):
        raise exceptions.CommandError(
            f'{path} is not a body of POST /allocations, which has the form {{consumer uuid: '
            f'{{"allocations": '
            f'{{provider uuid: {{"resources": {{class: amount}}}}}}}}}}')
    return body


def _completed(uuid: str, body: dict, now: Consumer) -> Consumer:
    """Return the Consumer that an entry of the file describes. If the entry lacks the generation,
    project, user or type, the value of ``now`` is used.

    :param body: entry of the file
    :param now: consumer as it is in placement
    """
    try:
        wanted = Consumer.from_body(uuid, body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise exceptions.CommandError(
            f'consumer {uuid}: "allocations" must be {{provider uuid: {{"resources": {{class: '
            f'amount}}}}}}') from error
    return dataclasses.replace(
        wanted,
        generation=body.get('consumer_generation', now.generation),
        project_id=wanted.project_id or now.project_id, user_id=wanted.user_id or now.user_id,
        consumer_type=wanted.consumer_type or now.consumer_type)


def _rows(found: Iterable[tuple[str, str, Consumer]], client: PlacementClient) -> Table:
    """Return (names of columns, rows) of a table. A consumer has a row for each provider of its
    allocations, or one row if it has no allocations."""
    rows = []
    for role, status, consumer in found:
        held = consumer.allocations or {'': {}}
        for provider, amounts in sorted(held.items()):
            rows.append((role, consumer.uuid, consumer.consumer_type or '', status,
                         client.name(provider) if provider else '', provider,
                         ', '.join(f'{name}={amount}' for name, amount in sorted(amounts.items()))))
    return ('Role', 'Consumer', 'Type', 'Status', 'Provider', 'Provider ID', 'Resources'), rows
