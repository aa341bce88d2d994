"""``[DEFAULT] state_path``, Nova's own option: the directory of files that must survive a
restart."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt('state_path', help="""
Directory of Nova's state, as in Nova itself. Kronos stores its SQLite files in it.

By default, not set, because a program outside Nova cannot know the default of Nova.

Set it to the same directory as in the nova.conf of Nova.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``state_path``, unless Nova has registered it in this process.

    The option has no default here. Nova's default is the directory in which Nova is installed; a
    command outside Nova cannot know that directory.
    """
    if 'state_path' not in conf:
        conf.register_opts(OPTS)
