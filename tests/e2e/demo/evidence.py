"""Evidence of placement: sampled while moves run, counted from its access log, audited at the
end."""

import collections
import datetime
import threading
import time

import requests
from keystoneauth1 import exceptions

PERIOD = 0.4


class Sampler(threading.Thread):
    """Asks placement about both consumers of every move in progress, again and again."""

    def __init__(self, cloud):
        super().__init__(daemon=True)
        self._cloud = cloud
        self._over = threading.Event()
        self.samples = collections.defaultdict(list)
        self.errors = []

    def run(self):
        while not self._over.wait(PERIOD):
            try:
                for move in self._migrating():
                    self.samples[move['uuid']].append(self._sample(move))
            except (exceptions.ClientException, requests.RequestException) as error:
                self.errors.append(str(error))

    def stop(self):
        self._over.set()
        self.join()

    def _migrating(self):
        return self._cloud.database.query(
            'kronos', 'SELECT uuid, instance_uuid, migration_uuid, source, destination FROM moves '
            "WHERE state = 'migrating' AND migration_uuid IS NOT NULL")

    def _sample(self, move):
        migration, migration_type = self._cloud.client.allocations(move['migration_uuid'])
        instance, instance_type = self._cloud.client.allocations(move['instance_uuid'])
        return {'at': time.time(),
                'migration_holds': migration, 'migration_type': migration_type,
                'instance_holds': instance, 'instance_type': instance_type,
                'split': (set(migration) == {move['source']} and
                          set(instance) == {move['destination']}),
                'typed': (migration_type, instance_type) == ('MIGRATION', 'INSTANCE')}

    def of(self, move):
        """Return how often a move was seen, how often split, how often with both types named as
        well, and a sample each of what was split and of what was not (as before the request to
        placement).

        Nova makes a server's consumer without a type, and our request gives it one. Where placement
        repeats the request, because another write came first, it stores the
        allocations and drops the type: then it says ``unknown`` of a server that is split well.
        """
        samples = self.samples[move['uuid']]
        split = [sample for sample in samples if sample['split']]
        other = [sample for sample in samples if not sample['split']]
        typed = sum(sample['typed'] for sample in split)
        return {'samples': len(samples), 'split': len(split), 'typed': typed,
                'first': split[0] if split else None,
                'other': other[len(other) // 2] if other else None}


def writes(entries, move):
    """Count the requests to write for a move in placement's access log.

    :returns: number of POST /allocations with the instance that placement carried out, of those
        that it refused (another write came first, and it was asked again), and of PUT for the
        instance
    """
    instance = move['instance_uuid']
    begun = unix_time(move['requested_at']) if move['requested_at'] else 0
    posts = [entry for entry in entries if entry['method'] == 'POST' and
             entry['path'] == '/allocations' and instance in (entry.get('body') or {})]
    if move['migration_uuid']:
        posts = [entry for entry in posts if move['migration_uuid'] in entry['body']]
    puts = [entry for entry in entries if entry['method'] == 'PUT' and
            entry['path'] == f'/allocations/{instance}' and entry['time'] >= begun]
    done = sum(entry['status'] == 204 for entry in posts)
    return {'post_allocations': done, 'refused_post_allocations': len(posts) - done,
            'put_allocations': len(puts)}


def unix_time(at):
    """Unix seconds of a time in a database, which is UTC and does not say so."""
    return at.replace(tzinfo=datetime.UTC).timestamp()


def audit(client, servers):
    """Every server's allocation by placement's own answers.

    Clean means: every server is ACTIVE, holds exactly one allocation, on the host where it runs,
    and no other consumer holds any.

    :param servers: uuids that must be there
    """
    held = client.consumers()
    found = {server['id']: server for server in client.servers()}
    problems = [f'{uuid} is gone' for uuid in servers if uuid not in found]
    rows = []
    for uuid, server in found.items():
        row = {'server': uuid, 'name': server['name'], 'status': server['status'],
               'host': server['OS-EXT-SRV-ATTR:host'], 'allocated_on': held.get(uuid, [])}
        row['clean'] = row['status'] == 'ACTIVE' and row['allocated_on'] == [row['host']]
        rows.append(row)
    others = {consumer: providers for consumer, providers in held.items()
              if consumer not in found}
    problems += [f'{row["name"]} is {row["status"]} on {row["host"]}, allocated on '
                 f'{row["allocated_on"]}' for row in rows if not row['clean']]
    problems += [f'{consumer}, which is no server, holds an allocation on {providers}'
                 for consumer, providers in others.items()]
    return {'clean': not problems, 'servers': len(rows), 'active': sum(
        row['status'] == 'ACTIVE' for row in rows), 'problems': problems,
        'allocations': sorted(rows, key=lambda row: row['name'])}
