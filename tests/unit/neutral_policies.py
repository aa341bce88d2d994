"""A policies file for tests of commands and of the API, which answer no request without one."""

import pathlib

TEXT = """
policies:
- name: cpu
  mode: spread
  weight: 1.0
  threshold: 1.0
  imbalance_query: a
  vm_profile_query: b
"""


def write(folder: pathlib.Path, rules: str = '') -> str:
    """Write it into a folder and return the line of ``[kronos]`` that names it.

    :param rules: further lines of the file
    """
    path = pathlib.Path(folder) / 'neutral-policies.yaml'
    path.write_text(f'{TEXT}{rules}')
    return f'policies_file = {path}'
