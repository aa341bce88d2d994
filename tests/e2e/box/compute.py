"""Starts the unmodified nova-compute with the box' driver within reach.

Nova loads hypervisor drivers from ``nova.virt`` only, so this folder is made a part of it.
"""

import pathlib
import sys

import nova.virt

nova.virt.__path__.append(str(pathlib.Path(__file__).parent / 'virt'))

if __name__ == '__main__':
    sys.argv[0] = 'nova-compute'
    from nova.cmd import compute
    sys.exit(compute.main())
