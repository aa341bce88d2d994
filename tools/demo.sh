#!/bin/sh
# The demo: a cloud of real OpenStack services on this machine, unevenly loaded, that Kronos
# balances. Needs Debian, root, Python 3.11 or later, and Debian packages and PyPI within reach.
#
#   tools/demo.sh [--driver fake|libvirt] [--fast] [--keep] [--output result.json] [--trace FILE]
#                 [--concurrency auto|threading|eventlet]
#
#   --driver         libvirt: QEMU runs the guests, and it is heard whether they live; without it
#                    they are made up
#   --fast           six hosts in one aggregate and short migrations, for CI
#   --keep           leave the cloud running and print its addresses
#   --output         where the result goes (result.json)
#   --trace          an .npz with loads in percent to play, in place of synthetic days
#   --concurrency    Nova's concurrency_backend
#
# What it installs stays for the next run: Debian packages (bindep.txt), and a virtual environment for
# each checkout and fresh databases under ~/.cache/kronos-nova. Nothing else does. Several demos may
# run side by side, of one checkout or of several. KRONOS_DEMO_VENV names a virtual environment that
# has everything already and is used as it is, KRONOS_DEMO_CONSTRAINTS other versions
# (constraints-33.txt: Nova 33). Where chromium and chromium-driver are installed, the page is drawn
# into a picture, result.png.
set -eu

source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kronos-nova
constraints=${KRONOS_DEMO_CONSTRAINTS:-$source_dir/constraints.txt}
checkout=$(printf '%s' "$source_dir" | sha256sum | cut -c 1-12)
venv=${KRONOS_DEMO_VENV:-$cache/demo-$(basename "$constraints" .txt)-$checkout}

say() {
    printf '%s\n' "$*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 2
}

help() {
    sed -n '2,/^set -eu/{/^#/{s/^# \{0,1\}//;p}}' "$0"
    exit 0
}

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13; do
        [ -n "$candidate" ] || continue
        command -v "$candidate" >/dev/null || continue
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue
        printf '%s' "$candidate"
        return 0
    done
    fail 'Python 3.11 or later is needed. Name one with PYTHON=...'
}

# What draws the page, where there is a browser.
browser_packages() {
    if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
        printf 'fixtures selenium'
    fi
}

is_current() {
    wanted=$(cat "$source_dir/requirements.txt" "$source_dir/tests/e2e/requirements.txt" \
        "$source_dir/setup.cfg" "$source_dir/kronos_nova/client/setup.cfg" "$constraints" | sha256sum)
    wanted="$wanted $(browser_packages)"
    [ "$(cat "$venv/installed" 2>/dev/null)" = "$wanted" ]
}

# The environment is made again when anything that goes into it has changed, but under no demo that
# runs: each holds its lock until it ends.
provide_environment() {
    mkdir -p "$cache"
    exec 8>"$venv.installing" 9>"$venv.running"
    flock --exclusive 8
    if ! is_current; then
        flock --exclusive --nonblock 9 ||
            fail 'Requirements have changed, and a demo of this checkout is running. End it first.'
        install_environment
    fi
    flock --shared 9
    flock --unlock 8
}

install_environment() {
    python=$(find_python)
    say "installing Nova, placement, glance, neutron and Kronos into $venv (a minute or two)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    say '  1 of 3: what builds packages'
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$constraints" setuptools wheel pbr
    say '  2 of 3: the services and their libraries, some 250 packages'
    # shellcheck disable=SC2046 # several packages
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$constraints" --requirement "$source_dir/requirements.txt" \
        --requirement "$source_dir/tests/e2e/requirements.txt" $(browser_packages)
    say '  3 of 3: Kronos'
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps --no-build-isolation --editable "$source_dir" \
        --editable "$source_dir/kronos_nova/client"
    printf '%s' "$wanted" > "$venv/installed"
}

# Before anything is installed.
for argument; do
    case $argument in
        -h | --help) help ;;
        libvirt | --driver=libvirt) hypervisors=yes ;;
    esac
done

# shellcheck source=tools/machine.sh
. "$source_dir/tools/machine.sh"
[ "$(id -u)" = 0 ] || fail 'The demo starts its own RabbitMQ and MariaDB and has to run as root.'
debian_packages demo
[ -z "${hypervisors:-}" ] || "$source_dir/tools/setup.sh" --hypervisors
[ -n "${KRONOS_DEMO_VENV:-}" ] || provide_environment
export PYTHONPATH="$source_dir:$source_dir/kronos_nova/client"
exec "$venv/bin/python" -P -m tests.e2e.demo "$@"
