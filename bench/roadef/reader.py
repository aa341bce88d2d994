"""Instances of the machine reassignment problem, read from the files of the challenge."""

import dataclasses
import pathlib

import numpy as np

MODEL, ASSIGNMENT, LOWER_BOUND = 'model_', 'assignment_', 'lb_'


class InvalidFileError(ValueError):
    """A file that is no model or assignment of the challenge. The text names the file and the
    remedy."""

    def __init__(self, path: pathlib.Path, problem: str, remedy: str):
        super().__init__(f'{path}: {problem}. {remedy}')


@dataclasses.dataclass(frozen=True, slots=True)
class Balance:
    """A balance cost: for each unit of free ``first`` there should be ``target`` units of free
    ``second``."""

    first: int
    second: int
    target: int
    weight: int


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An instance of the problem: R resources, M machines, S services and V processes. All arrays
    are int64, or bool.

    name : as in the names of the files, such as ``a1_1``
    transient : bool (R,), resources that a moved process needs on both machines
    load_weights : (R,), weight of each resource in the load cost
    neighborhoods, locations : (M,), of each machine
    capacities, safety : (M, R), capacities and safety capacities
    machine_costs : (M, M), cost of moving a process from the first machine to the second
    spread : (S,), number of locations that each service needs
    dependencies : for each service, the services on which it depends
    services : (V,), service of each process
    requirements : (V, R), requirements of each process
    process_costs : (V,), cost of moving each process
    balances : the balance costs
    weights : weights of the move costs of processes, services and machines
    assignment : (V,), original machine of each process
    lower_bound : published lower bound of the objective; None without a file
    """

    name: str
    transient: np.ndarray
    load_weights: np.ndarray
    neighborhoods: np.ndarray
    locations: np.ndarray
    capacities: np.ndarray
    safety: np.ndarray
    machine_costs: np.ndarray
    spread: np.ndarray
    dependencies: tuple[tuple[int, ...], ...]
    services: np.ndarray
    requirements: np.ndarray
    process_costs: np.ndarray
    balances: tuple[Balance, ...]
    weights: tuple[int, int, int]
    assignment: np.ndarray
    lower_bound: int | None = None


def find(paths: list[pathlib.Path]) -> list[pathlib.Path]:
    """Return the model files among ``paths``, sorted by name. A directory stands for all models in
    it and below it; an assignment file, for its model.

    :raises InvalidFileError: a path does not exist, or has no model
    """
    found = set()
    for path in paths:
        if path.is_dir():
            models = set(path.rglob(f'{MODEL}*.txt'))
            if not models:
                raise InvalidFileError(path, f'the directory has no file {MODEL}*.txt',
                                       'Pass a directory with files of the challenge.')
            found |= models
        else:
            found.add(_beside(path, ASSIGNMENT, MODEL) if path.name.startswith(ASSIGNMENT)
                      else path)
    return sorted(found, key=lambda path: path.name)


def read(model: pathlib.Path) -> Instance:
    """Read a model file, and the assignment file in the same directory.

    :raises InvalidFileError: one of the files is missing, or is not what its name says
    """
    if not model.name.startswith(MODEL):
        raise InvalidFileError(model, f'the name does not begin with "{MODEL}"',
                               f'Pass a file {MODEL}NAME.txt or a directory.')
    found = _model(_Numbers(model))
    numbers = _Numbers(_beside(model, MODEL, ASSIGNMENT))
    assignment = numbers.take(len(found['services']), 0, len(found['locations']))
    numbers.end()
    bound = _beside(model, MODEL, LOWER_BOUND)
    return Instance(name=model.stem.removeprefix(MODEL), assignment=assignment,
                    lower_bound=int(_Numbers(bound).take(1)[0]) if bound.exists() else None,
                    **found)


def _beside(path: pathlib.Path, prefix: str, other: str) -> pathlib.Path:
    return path.with_name(other + path.name.removeprefix(prefix))


class _Numbers:
    """The integers of a file, taken one after the other."""

    def __init__(self, path: pathlib.Path):
        self.path, self._next = path, 0
        try:
            self._numbers = np.array(path.read_text().split(), dtype=np.int64)
        except OSError as error:
            raise InvalidFileError(path, f'the file cannot be read ({error.strerror})',
                                   'Put the model and its assignment into one directory.') from None
        except (ValueError, OverflowError):
            raise InvalidFileError(path, 'the file has something other than integers',
                                   'Pass the unpacked text files of the challenge.') from None

    def take(self, count: int, low: int = 0, end: int | None = None) -> np.ndarray:
        """Return the next integers.

        :param low, end: each integer must be at least ``low``, and below ``end``

        :raises InvalidFileError: there are fewer integers, or one is out of range
        """
        found = self._numbers[self._next:self._next + count]
        if len(found) < count:
            raise InvalidFileError(self.path, f'the file ends after {len(self._numbers)} integers',
                                   'Unpack the file again; it is incomplete.')
        wrong = np.flatnonzero((found < low) | (False if end is None else found >= end))
        if len(wrong):
            place = self._next + int(wrong[0])
            raise InvalidFileError(
                self.path, f'integer {place + 1} is {self._numbers[place]}, which is out of range',
                'Pass the model and the assignment of one instance, as published.')
        self._next += count
        return found

    def one(self, low: int = 0, end: int | None = None) -> int:
        return int(self.take(1, low, end)[0])

    def end(self) -> None:
        """Check that no integer is left.

        :raises InvalidFileError: integers are left
        """
        if self._next < len(self._numbers):
            raise InvalidFileError(
                self.path, f'the file has {len(self._numbers)} integers instead of {self._next}',
                'Pass the model and the assignment of one instance, as published.')


def _model(numbers: _Numbers) -> dict:
    """Return the fields of an Instance that are in the model file."""
    resources = numbers.one(1)
    kinds = numbers.take(2 * resources).reshape(-1, 2)
    machines = numbers.one(1)
    table = numbers.take(machines * (2 + 2 * resources + machines)).reshape(machines, -1)
    neighborhoods, locations, capacities, safety, costs = np.split(
        table, np.cumsum([1, 1, resources, resources]), axis=1)
    services = numbers.one(1)
    spread, dependencies = [], []
    for _ in range(services):
        spread.append(numbers.one())
        dependencies.append(tuple(numbers.take(numbers.one(), 0, services).tolist()))
    processes = numbers.one(1)
    table = numbers.take(processes * (2 + resources)).reshape(processes, -1)
    if table[:, 0].max() >= services:
        raise InvalidFileError(numbers.path, f'a process has service {table[:, 0].max()} of '
                               f'{services}', 'Pass a model of the challenge, as published.')
    balances = tuple(
        Balance(numbers.one(0, resources), numbers.one(0, resources), numbers.one(), numbers.one())
        for _ in range(numbers.one()))
    weights = tuple(numbers.take(3).tolist())
    numbers.end()
    return {'transient': kinds[:, 0] > 0, 'load_weights': kinds[:, 1],
            'neighborhoods': neighborhoods[:, 0], 'locations': locations[:, 0],
            'capacities': capacities, 'safety': safety, 'machine_costs': costs,
            'spread': np.array(spread), 'dependencies': tuple(dependencies),
            'services': table[:, 0], 'requirements': table[:, 1:-1],
            'process_costs': table[:, -1], 'balances': balances, 'weights': weights}
