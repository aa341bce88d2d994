"""Writes a cluster of ``data/clusters`` as a snapshot folder, as kronos-record would have."""

import json
import pathlib

from bench import inputs
from bench import installation
from kronos_nova.policies import loader
from kronos_nova.record import writer

AGGREGATE = installation.AGGREGATE


def write(name: str, folder: pathlib.Path, threshold: float = 0.05, budget: int = 50):
    problem = inputs.cluster(name, own_scale=False)
    cloud = installation.Cloud(problem)
    policies = installation.policies_file(problem, 'spread', threshold, budget)
    bodies = {(query.policy, query.kind): _body(cloud.query(query))
              for query in writer.questions(loader.parse(policies))}
    writer.write(writer.Taken(snapshot=cloud.snapshot(), policies=policies.encode(), bodies=bodies,
                              kronos_version='0', cloud=name), folder)


def _body(vector):
    result = [{'metric': sample.labels, 'value': [sample.timestamp, repr(sample.value)]}
              for sample in vector.samples]
    return json.dumps({'status': 'success',
                       'data': {'resultType': 'vector', 'result': result}}).encode()
