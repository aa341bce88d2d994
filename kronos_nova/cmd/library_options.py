"""Check of the options that the programs of Kronos have from other libraries, such as oslo.log.
oslo.config checks a value only when the option is read, so a program may fail long after it was
started."""

import logging
import os
from collections.abc import Iterator

import oslo_messaging.opts
import oslo_policy.opts
from keystonemiddleware import auth_token
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import api_checks
from kronos_nova.conf import invalid_values
from kronos_nova.executor import broker

UNUSED = ('oslo_messaging_kafka',)
"""Groups of options of oslo.messaging (no unit) that are not checked, because no service of Nova
reads them with RabbitMQ. Fixed by oslo.messaging."""


def invalid_values_of(conf: cfg.ConfigOpts) -> dict[tuple[str, str], str]:
    """Return the invalid values in the configuration files of ``conf``: {(group, option): reason}.
    The options are those of Kronos, and those of oslo.messaging, oslo.log, oslo.db and keystoneauth
    that the programs of Kronos read. On a host of kronos-api, the options of keystonemiddleware and
    oslo.policy are included."""
    fresh = kronos_conf.read_again(conf)
    listed = [each for each in oslo_messaging.opts.list_opts() if each[0] not in UNUSED]
    if not api_checks.skips(conf):
        listed += [*auth_token.list_opts(), *oslo_policy.opts.list_opts()]
    for group, options in listed:
        fresh.register_opts(options, group=group)
    broker.register_options(fresh)
    wrong = invalid_values.all_values(fresh)
    return wrong | dict(_wrong_logging(fresh, wrong))


def _wrong_logging(conf: cfg.ConfigOpts, wrong: dict[tuple[str, str], str]) -> Iterator[
        tuple[tuple[str, str], str]]:
    """Yield the options of oslo.log with a value that oslo.config accepts, and oslo.log refuses."""
    levels, file = (invalid_values.DEFAULT, 'default_log_levels'), conf.log_config_append
    for pair in () if levels in wrong else conf.default_log_levels:
        level = pair.partition('=')[2]
        try:
            logging.Logger('unused').setLevel(int(level) if level.isdecimal() else level)
        except ValueError:
            yield levels, f"'{pair}' names no level of logging, such as nova=INFO"
    if file and not os.access(file, os.R_OK):
        yield (invalid_values.DEFAULT, 'log_config_append'), f'{file} cannot be read'
