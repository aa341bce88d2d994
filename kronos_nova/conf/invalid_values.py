"""Search for option values that oslo.config refuses. oslo.config checks a value only when the
option is read, so this module reads every option."""

import re
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception

_WORDS = ((re.compile(r'invalid literal for int\(\) with base 10: (.*)'), r'\1 is no whole number'),
          (re.compile(r'could not convert string to float: (.*)'), r'\1 is no number'),
          (re.compile(r'''(?<=[/'"])[^\s/@'"]+@'''), '***@'))    # credentials in a URL

DEFAULT = 'DEFAULT'
"""Name (no unit) of the group of options that belong to no other group. Fixed by oslo.config."""

_LONGEST = 300
"""Maximum number of characters of the text of an error about an option's value. A longer text is
cut. Raised, an error can fill a screen; lowered, the part that names the invalid value may be cut
off. Not measured."""


def values(conf: cfg.ConfigOpts) -> dict[tuple[str, str], str]:
    """Return the invalid values in the groups of Kronos: {(group, option): reason why oslo.config
    rejects the value}."""
    return _values(conf, [module.GROUP.name for module in kronos_conf.GROUPS])


def all_values(conf: cfg.ConfigOpts) -> dict[tuple[str, str], str]:
    """Return the invalid values of all registered options, in the form of :func:`values`."""
    wrong = {(DEFAULT, option): problem for option, problem in _wrong(conf)}
    groups = [name for name in conf if (DEFAULT, name) not in wrong
              and isinstance(conf[name], cfg.ConfigOpts.GroupAttr)]
    return wrong | _values(conf, groups)


def _values(conf: cfg.ConfigOpts, groups: Iterable[str]) -> dict[tuple[str, str], str]:
    return {(group, option): problem for group in groups for option, problem in _wrong(conf[group])}


def _wrong(group: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for option in group:
        try:
            group[option]
        except (cfg.Error, ValueError) as error:
            yield option, _without_where(error)


def described(wrong: Mapping[tuple[str, str], str]) -> str:
    return '; '.join(f'[{group}] {option}: {problem}'
                     for (group, option), problem in wrong.items())


def refuse(conf: cfg.ConfigOpts, *groups: str) -> None:
    """Check the values in some groups of Kronos.

    :raises ConfigurationError: a value is invalid
    """
    wrong = {key: problem for key, problem in values(conf).items() if key[0] in groups}
    if wrong:
        raise exception.ConfigurationError(what='nova.conf', problem=described(wrong),
                                           remedy='Correct the value.')


def use_defaults(conf: cfg.ConfigOpts, wrong: Container[tuple[str, str]]) -> None:
    """Override invalid values with the defaults, so that reading these options does not fail."""
    for module in kronos_conf.GROUPS:
        group = module.GROUP.name
        for option in module.list_opts():
            if (group, option.dest) in wrong and option.dest in conf[group]:
                conf.set_override(option.dest, option.default, group)


def _without_where(error: Exception) -> str:
    """Return the text of an error about a value, without the name of the option. Phrases of Python
    are replaced by plain words, and credentials in a URL by asterisks."""
    said = str(error).rpartition(' is not valid: ')[2]
    for found, better in _WORDS:
        said = found.sub(better, said)
    return (said if said.isprintable() else repr(said))[:_LONGEST]
