"""``python -m bench SUBCOMMAND``: find the subcommands, run one, print and keep its report."""

import argparse
import importlib
import pathlib
import pkgutil
import sys

import bench
from bench import report


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='python -m bench', description=bench.__doc__)
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE',
                        help='also write the report as JSON')
    subparsers = parser.add_subparsers(required=True, metavar='SUBCOMMAND')
    for info in pkgutil.iter_modules(bench.__path__):
        if info.name != '__main__':
            module = importlib.import_module(f'bench.{info.name}')
            if hasattr(module, 'register'):
                module.register(subparsers)
    return parser


def main(argv=None) -> int:
    args = build_parser().parse_args(argv)
    found = args.run(args)
    report.show(found)
    if args.json:
        args.json.write_text(report.to_json(found))
    return 1 if found.failures else 0


if __name__ == '__main__':
    sys.exit(main())
