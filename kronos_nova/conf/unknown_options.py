"""Search for unknown options and groups in the configuration files.

oslo.config ignores options that are not registered, because several programs may share a file. In
the groups of Kronos, an option that is not registered can only be a mistake.
"""

import pathlib
from collections.abc import Iterator

from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception

PREFIX = 'kronos'
DRIVER = 'kronos'
NOTIFICATIONS = 'oslo_messaging_notifications'


def sections(conf: cfg.ConfigOpts) -> dict[str, dict[str, list[str]]]:
    """Return {group: {key: values}} from the files that ``conf`` has read. Options that are not
    registered are included. Each value is a text.

    :raises cfg.Error: a file cannot be read any more
    """
    found: dict[str, dict[str, list[str]]] = {}
    for path in files(conf):
        for group, values in _parsed(path).items():
            for key, given in values.items():
                found.setdefault(group, {}).setdefault(key, []).extend(given)
    return found


def files(conf: cfg.ConfigOpts) -> list[pathlib.Path]:
    """Return the configuration files that were read, in the order in which they were read."""
    named = [pathlib.Path(path) for path in conf.config_file or ()]
    folders = map(pathlib.Path, conf.config_dir or ())
    return named + [path for folder in folders for path in sorted(folder.glob('*.conf'))]


def unknown_keys(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each unknown group of Kronos, and for each unknown key in a known group
    of Kronos. The sentence names the most similar name that exists, if there is one."""
    known = {group.name: {name for option in options for name in _names(option)}
             for group, options in kronos_conf.list_opts()}
    problems = []
    for group, values in sorted(sections(conf).items()):
        if not group.startswith(PREFIX):
            continue
        if group == conf[kronos_conf.prometheus.GROUP.name].auth_section:
            known.setdefault(group, set())
        if group not in known:
            problems.append(f'there is no group [{group}]{exception.meant(_plain(group), known)}')
            continue
        of_plugin = _of_plugin(conf, group)
        if of_plugin is None:
            continue
        registered = known[group] | {_plain(name) for name in conf[group]} | of_plugin
        problems += [f'[{group}] {key}: there is no such option'
                     f'{exception.meant(_plain(key), registered)}'
                     for key in sorted(values) if _plain(key) not in registered]
    return problems


def lacks_driver(conf: cfg.ConfigOpts) -> bool:
    """Return true if nova.conf does not name ``kronos`` as a notification driver; false if
    nova.conf names it. Without this driver, Nova does not load Kronos. oslo.messaging does not
    split a value at commas, so that each driver needs a line of its own."""
    values = sections(conf).get(NOTIFICATIONS, {}).get('driver', [])
    return DRIVER not in {value.strip() for value in values}


def _of_plugin(conf: cfg.ConfigOpts, group: str) -> set[str] | None:
    """Return the names of the options of an authentication plugin, which keystoneauth registers
    only when it loads the plugin. The option ``auth_type`` of the group names the plugin. Return an
    empty set if the group names no plugin. Return None if the plugin does not exist; the error is
    reported when the plugin is loaded."""
    is_login = group in (kronos_conf.nova.GROUP.name,
                         conf[kronos_conf.prometheus.GROUP.name].auth_section)
    if is_login:
        loading.register_auth_conf_options(conf, group)
        loading.register_session_conf_options(conf, group)
    name = conf[group].auth_type if is_login else None
    try:
        options = loading.get_auth_plugin_conf_options(name) if name else ()
    except exceptions.NoMatchingPlugin:
        return None
    return {name for option in options for name in _names(option)}


def _parsed(path: pathlib.Path) -> dict[str, dict[str, list[str]]]:
    """Return the content of a configuration file.

    :raises cfg.Error: the file cannot be read, is not UTF-8, or is malformed
    """
    found: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), found).parse()
    except cfg.ParseError as error:     # which is no cfg.Error
        raise cfg.ConfigFileParseError(str(path), str(error)) from error
    except OSError as error:
        raise cfg.ConfigFileParseError(str(path), str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise cfg.ConfigFileParseError(str(path), f'it is not UTF-8: {error.reason}') from error
    return found


def _names(option: cfg.Opt) -> Iterator[str]:
    yield _plain(option.name)
    yield option.dest
    for old in option.deprecated_opts:
        yield _plain(old.name or option.name)


def _plain(name: str) -> str:
    return name.replace('-', '_')
