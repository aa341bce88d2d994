"""The file ``options.json`` of a snapshot. The file has the options that were in force when the
snapshot was taken."""

import json
import pathlib
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.record.problems import Problems

NAME = 'options.json'

RecordedOptions = Mapping[str, Mapping[str, Any]]
"""Recorded options, as {group: {option: value}}. The values have types that JSON has."""


def in_force(conf: cfg.ConfigOpts) -> dict[str, dict[str, Any]]:
    """Return all options of Kronos except secrets, as {group: {option: value}}.

    :param conf: the configuration, on which :func:`kronos_nova.conf.register_opts` was called
    """
    return {module.GROUP.name: {opt.dest: conf[module.GROUP.name][opt.dest]
                                for opt in module.OPTS if not opt.secret}
            for module in kronos_conf.GROUPS}


def apply(conf: cfg.ConfigOpts, recorded: RecordedOptions, folder: pathlib.Path) -> None:
    """Set the recorded options in ``conf``. An option that was renamed after the recording is set
    under its new name.

    :param folder: folder of the snapshot, for errors
    :raises SnapshotError: options do not exist or have invalid values; the message has a line for
        each
    """
    problems, known = Problems(folder), known_options()
    for group, values in recorded.items():
        for name, value in values.items():
            place = f'{NAME}: {group}.{name}'
            if (group, name) not in known:
                problems.add(place, 'there is no such option')
                continue
            if value is None and known[group, name].default is not None:
                problems.add(place, 'null is no value of this option; remove the line to use the '
                                    'default')
                continue
            try:
                conf.set_override(known[group, name].dest, value, group)
            except (AttributeError, TypeError, ValueError, cfg.Error):
                problems.add(place, f'{json.dumps(value)} is no value of this option')
    problems.raise_if_any()


def known_options() -> dict[tuple[str, str], cfg.Opt]:
    """Return {(group, name): option} for all options of Kronos. The keys include the deprecated
    names of options."""
    return {(module.GROUP.name, name): opt for module in kronos_conf.GROUPS
            for opt in module.OPTS for name in _names(opt)}


def _names(opt: cfg.Opt) -> Iterator[str]:
    yield opt.dest
    yield from (old.name.replace('-', '_') for old in opt.deprecated_opts if old.name)
