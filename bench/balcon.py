"""Pack on BalCon's published instances, whose hosts are full in one resource or the other."""

from bench import report


def register(subparsers):
    parser = subparsers.add_parser('balcon', help='pack on published consolidation instances')
    parser.add_argument('--every', type=int, default=1, metavar='N',
                        help='take every Nth instance only')
    parser.add_argument('--no-caps', action='store_true',
                        help='leave out the runs with a cap on the moves')
    parser.add_argument('--installed', action='store_true',
                        help='also one cycle with the options of an installation')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    from bench import inputs

    references = inputs.balcon_references()
    free = [_uncapped(args, name, references[name]) for name in sorted(references)[::args.every]]
    capped = [] if args.no_caps else [
        _capped(args, name, cap, found, reference['hosts_before'])
        for name, reference in sorted(references.items())
        for cap, found in reference['capped_mip'].items()]
    equal = sum(row[3] <= row[4] for row in free) / len(free)
    memory, theirs = sum(row[6] for row in free), sum(row[7] for row in free)
    summary = [('instances with as few hosts as BalCon', f'{100 * equal:.0f} %'),
               ('TiB moved in sum', memory), ('the same, BalCon', theirs),
               ('most CPU seconds', max(row[10] for row in free + capped))]
    failures = []
    if equal < 0.95:
        failures.append(f'as few hosts as BalCon on {100 * equal:.0f} %, target 95 %')
    if memory > theirs:
        failures.append(f'{memory:.0f} TiB moved, BalCon {theirs:.0f}')
    if capped:
        freed, best = sum(row[4] for row in capped), sum(row[5] for row in capped)
        summary.append(('hosts freed under a cap, of those that the MILP frees',
                        f'{freed} of {best}'))
        if freed < 0.9 * best:
            failures.append(f'{freed} hosts freed under caps, the MILP {best}, target 90 %')
    return report.Report(tables=(
        report.Table('summary', ('figure', 'value'), summary),
        report.Table('without a cap', (
            'instance', 'hosts before', 'volume bound', 'hosts after', 'BalCon', 'moves',
            'TiB moved', 'TiB BalCon', 'moves BalCon', 'refused moves', 'CPU s',
            'hosts after, installed', 'moves, installed'), free),
        report.Table('with a cap on the moves', (
            'instance', 'cap %', 'cap', 'moves', 'hosts freed', 'MILP', 'TiB moved',
            'refused moves', 'hosts before', 'MILP is proven', 'CPU s', 'hosts freed, installed',
            'moves, installed'), capped)),
        notes=('Installed: one cycle of plan_cycle with the default options; moves that would '
               'begin after stale_plan_age are no part of its plan.',
               'The MILP looks at end states only; the plans here can be carried out step by step.',
               'BalCon: FGCS 2023, arXiv 2309.11859, with weights 10 a host and 1 a TiB.'),
        failures=tuple(failures))


def _uncapped(args, name: str, reference: dict) -> tuple:
    import numpy as np

    from bench import inputs
    from bench import trial
    from kronos_nova.planners.pack import Pack

    problem = inputs.balcon(name)
    bound = int(np.ceil(problem.scores.sum(axis=0).max() - 1e-9))
    found = trial.plan(Pack(), problem, 2 * len(problem.vms))
    theirs = reference['balcon']
    return (name, reference['hosts_before'], bound, found.hosts, theirs['active'], found.moves,
            found.memory_gib / 1024, theirs['memory_tib_moved'], theirs['migrations'],
            found.refused, found.seconds, *_installed(args, problem, 2 * len(problem.vms)))


def _capped(args, name: str, percent: str, reference: dict, before: int) -> tuple:
    from bench import inputs
    from bench import trial
    from kronos_nova.planners.pack import Pack

    problem = inputs.balcon(name)
    found = trial.plan(Pack(), problem, reference['cap'])
    hosts, moves = _installed(args, problem, reference['cap'])
    return (name, int(percent), reference['cap'], found.moves, before - found.hosts,
            before - reference['active'], found.memory_gib / 1024, found.refused, before,
            reference['proven'], found.seconds, None if hosts is None else before - hosts, moves)


def _installed(args, problem, budget):
    """Return (hosts in use after a cycle of an installation, its number of moves); None for both
    unless ``args.installed``."""
    from bench import trial

    if not args.installed:
        return None, None
    found = trial.installed(problem, 'pack', budget)
    return found.hosts, found.moves
