"""The default rules of oslo.policy, made from the table of operations.

An answer of Kronos can show servers of all projects. So the reader role in a single project permits
no operation. To read, a user needs the role ``kronos_reader``, or the reader role with the scope of
the system.
"""

import os
import re
from collections.abc import Iterable

from oslo_config import cfg
from oslo_policy import policy

from kronos_client.contract.operation import ADMIN
from kronos_client.contract.operation import OPERATOR
from kronos_client.contract.operation import READER
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.api import routes

GROUP = 'kronos_api'

CORRECT_IT = 'Correct it, or remove it and the option for the defaults.'
"""Text of the remedy in errors about a faulty file of policy rules."""

AUDIENCES = (
    policy.RuleDefault(f'kronos_{ADMIN}', 'role:admin', 'May do everything.'),
    policy.RuleDefault(
        f'kronos_{OPERATOR}', f'rule:kronos_{ADMIN} or role:kronos_operator',
        'Runs the cloud: approves and stops, drains hosts.'),
    policy.RuleDefault(
        f'kronos_{READER}', f'rule:kronos_{OPERATOR} or role:kronos_reader or '
        '(role:reader and system_scope:all)',
        'May look. A reader of a single project may not: it would see the servers of all.'),
)


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules of the API for oslopolicy-sample-generator."""
    return [*AUDIENCES, *(
        policy.DocumentedRuleDefault(
            operation.rule, f'rule:kronos_{operation.audience}', operation.summary,
            [{'method': operation.method, 'path': operation.path}])
        for operation in routes.OPERATIONS)]


def enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """Make the enforcer of policies, with the rules of ``[kronos_api] policy_file`` if that option
    names a file.

    :raises ConfigurationError: the file has no rules, or has rules that would not have the intended
        effect. The default rules are not used in place of such a file, because they may permit more
        than the file was meant to permit
    """
    made = policy.Enforcer(conf, policy_file=conf.kronos_api.policy_file)
    made.register_defaults(list_rules())
    try:
        made.load_rules()
    except (ValueError, TypeError, AttributeError, cfg.ConfigFilesPermissionDeniedError) as error:
        raise exception.ConfigurationError(
            what=_file(conf),
            problem=f'cannot be read as a file of policy rules: {boundary.shown(error)}',
            remedy=CORRECT_IT) from error
    if made.policy_path is None:
        _refuse_missing(conf)
    elif not os.path.getsize(made.policy_path):
        raise exception.ConfigurationError(
            what=_file(conf), problem='the file is empty', remedy=CORRECT_IT)
    for name, rule in made.file_rules.items():
        _refuse_unclear(conf, name, rule)
    _refuse_unknown_names(conf, made)
    try:
        made.check_rules(raise_on_violation=True)
    except policy.InvalidDefinitionError as error:
        raise exception.ConfigurationError(
            what=_file(conf), problem='has rules that refer to a rule that does not exist, or to '
            f'each other in a circle: {boundary.shown(error)}', remedy=CORRECT_IT) from error
    return made


def _refuse_missing(conf: cfg.ConfigOpts) -> None:
    found = conf.get_location('policy_file', GROUP)
    if found is not None and found.location != cfg.Locations.opt_default:
        raise exception.ConfigurationError(
            what=_file(conf), problem='the file does not exist',
            remedy='Correct the path, or remove the option to use the default rules.')


def _refuse_unclear(conf: cfg.ConfigOpts, name: str, rule: policy.RuleDefault) -> None:
    if rule.check_str is None:
        raise exception.ConfigurationError(
            what=_file(conf), problem=f'the rule "{boundary.shown(name)}" is empty',
            remedy='Write a rule: "@" permits everyone, "!" no one.')
    # oslo.policy logs a rule that it cannot parse, and replaces it by one that permits no request.
    if '!' in str(rule.check) and '!' not in str(rule.check_str):
        raise exception.ConfigurationError(
            what=_file(conf), problem=f'the rule "{boundary.shown(name)}" cannot be parsed: '
            f'{boundary.shown(rule.check_str)}', remedy=CORRECT_IT)


def _refuse_unknown_names(conf: cfg.ConfigOpts, made: policy.Enforcer) -> None:
    used = {each for rule in made.rules.values()
            for each in re.findall(r'rule:([^\s()]+)', str(rule))}
    unknown = sorted(made.file_rules.keys() - made.registered_rules.keys() - used)
    if unknown:
        guess = exception.meant(str(unknown[0]), made.registered_rules)
        raise exception.ConfigurationError(
            what=_file(conf),
            problem='has rules whose names belong to no operation, and which no other rule uses: '
                    f'{_quoted(unknown)}{guess}',
            remedy='Correct or remove the rules; the documentation of the API has all names.')


def _file(conf: cfg.ConfigOpts) -> str:
    """Return the name and the value of the option ``policy_file``, as a text for errors."""
    return f'[kronos_api] policy_file {conf.kronos_api.policy_file}'


def _quoted(names: Iterable[str]) -> str:
    return ', '.join(f'"{boundary.shown(name)}"' for name in sorted(map(str, names)))
