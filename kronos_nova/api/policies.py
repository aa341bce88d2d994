"""Who may do what: the defaults of oslo.policy, made of the table of operations.

What Kronos shows is of the whole cloud, servers of all projects among it, so a reader is none of a
project's.
"""

from oslo_config import cfg
from oslo_policy import policy

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.api import routes
from kronos_nova.contract.operation import ADMIN
from kronos_nova.contract.operation import OPERATOR
from kronos_nova.contract.operation import READER

AUDIENCES = (
    policy.RuleDefault(f'kronos_{ADMIN}', 'role:admin', 'Whoever may do everything.'),
    policy.RuleDefault(
        f'kronos_{OPERATOR}', f'rule:kronos_{ADMIN} or role:kronos_operator',
        'Whoever runs the cloud: approves and stops, drains hosts.'),
    policy.RuleDefault(
        f'kronos_{READER}', f'rule:kronos_{OPERATOR} or role:kronos_reader or '
        '(role:reader and system_scope:all)',
        'Whoever may look. A reader of a single project may not: it would see the servers of all.'),
)


def list_rules():
    """For oslopolicy-sample-generator."""
    return [*AUDIENCES, *(
        policy.DocumentedRuleDefault(
            operation.rule, f'rule:kronos_{operation.audience}', operation.summary,
            [{'method': operation.method, 'path': operation.path}])
        for operation in routes.OPERATIONS)]


def enforcer(conf) -> policy.Enforcer:
    """What judges requests, by ``[kronos_api] policy_file`` where there is one.

    :raises ConfigurationError: that is no file of rules
    """
    made = policy.Enforcer(conf, policy_file=conf.kronos_api.policy_file)
    made.register_defaults(list_rules())
    try:
        made.load_rules()
    except (ValueError, TypeError, AttributeError, cfg.ConfigFilesPermissionDeniedError) as error:
        # Otherwise the defaults would hold, which may permit more than it was meant to.
        raise exception.ConfigurationError(
            what=f'[kronos_api] policy_file {conf.kronos_api.policy_file}',
            problem=f'is no file of rules: {boundary.shown(error)}',
            remedy='Mend it, or take it away for the defaults.') from error
    return made
