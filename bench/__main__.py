"""``python -m bench SUBCOMMAND``: find the subcommands, run one, print and keep its report."""

import argparse
import importlib
import os
import pathlib
import pkgutil
import sys

import bench
from bench import report

# Run by another interpreter, or this module.
NO_SUBCOMMANDS = {'__main__', 'watcher_audit'}


def build_parser(wanted: list[str]) -> argparse.ArgumentParser:
    """Return a parser with the subcommands that ``wanted`` names, or with all. Some subcommands
    need packages that others do not."""
    parser = argparse.ArgumentParser(prog='python -m bench', description=bench.__doc__)
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE',
                        help='also write the report as JSON')
    subparsers = parser.add_subparsers(required=True, metavar='SUBCOMMAND')
    names = [info.name for info in pkgutil.iter_modules(bench.__path__)]
    for name in [name for name in names if name in wanted] or names:
        if name not in NO_SUBCOMMANDS:
            module = importlib.import_module(f'bench.{name}')
            if hasattr(module, 'register'):
                module.register(subparsers)
    return parser


def main(argv=None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = build_parser(argv).parse_args(argv)
    # Where it may not be written every process of Nova's compiles all of it, which takes longer
    # than to load it.
    os.environ.pop('PYTHONDONTWRITEBYTECODE', None)
    found = args.run(args)
    report.show(found)
    if args.json:
        args.json.write_text(report.to_json(found))
    return 1 if found.failures else 0


if __name__ == '__main__':
    sys.exit(main())
