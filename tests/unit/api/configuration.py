"""The configuration of a kronos-api whose keystone is keystonemiddleware's own fixture."""

import pathlib

import keystonemiddleware.auth_token  # noqa: F401 - registers options that nova.conf has
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from tests.unit import neutral_policies


def configure(folder: pathlib.Path, kronos: str) -> cfg.ConfigOpts:
    """
    :param folder: where nova.conf is written, and the policy file may be
    :param kronos: the lines of ``[kronos]``
    """
    path = folder / 'nova.conf'
    path.write_text(
        f'[DEFAULT]\nstate_path = {folder}\n[kronos]\n'
        f'{neutral_policies.write(folder)}\n{kronos}\n[kronos_api]\n'
        f'policy_file = {folder}/policy.yaml\n[keystone_authtoken]\n'
        'www_authenticate_uri = http://keystone.invalid/v3\n')
    (folder / 'policy.yaml').write_text('# The defaults.\n')
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([f'--config-file={path}'], project='nova')
    return conf
