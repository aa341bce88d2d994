"""Nova's code outside of a Nova service, as nova-manage runs it."""

import os


def load_nova(config_files, config_dirs):
    """Read nova.conf into Nova's own configuration and register its objects.

    To be called before anything else of Nova is imported: Nova decides then which concurrency it
    uses, and a command needs plain threads, whatever the services are configured to.

    :param config_files: paths, or None for the files that Nova looks for by itself
    """
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'true'
    from nova import monkey_patch
    monkey_patch.patch()

    from nova import config
    from nova import objects
    args = [f'--config-file={path}' for path in config_files or ()]
    args += [f'--config-dir={path}' for path in config_dirs or ()]
    config.parse_args(['kronos-manage', *args])
    objects.register_all()
