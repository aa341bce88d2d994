"""Nova's code outside of a Nova service, as nova-manage runs it."""

from nova import config
from nova import objects


def load_nova(config_files, config_dirs):
    """Read nova.conf into Nova's own configuration and register its objects.

    :param config_files: paths, or None for the files that Nova looks for by itself
    """
    args = [f'--config-file={path}' for path in config_files or ()]
    args += [f'--config-dir={path}' for path in config_dirs or ()]
    # Without the notification driver: nothing of this is a service.
    config.parse_args(['kronos-manage', *args], init_rpc=False)
    objects.register_all()
    objects.Service.enable_min_version_cache()
