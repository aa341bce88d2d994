#!/bin/sh
# Everything that developing and testing need, on Debian: packages (as root) and the virtual
# environments .venv (Nova 34) and .venv-33 (Nova 33), with versions known to work together.
# Run again after a change of requirements; what is there already is kept.
#
#   tools/setup.sh [--if-needed]    only if it has never been done, or requirements have changed
#   tools/setup.sh --hypervisors    the Debian packages alone that the box needs for real hypervisors
set -eu

source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$source_dir"

# shellcheck source=tools/machine.sh
. "$source_dir/tools/machine.sh"
if [ "${1:-}" = --hypervisors ]; then
    debian_packages hypervisors
    # Without KVM, QEMU before 9.0 loses some of what a guest writes while it is migrated live.
    newer_from_backports qemu-system-x86 1:9.0
    exit
fi

wanted=$(cat requirements.txt test-requirements.txt doc/requirements.txt constraints*.txt \
    setup.cfg kronos_nova/client/setup.cfg bindep.txt tests/e2e/requirements.txt | sha256sum)
[ "${1:-}" != --if-needed ] || [ "$(cat .venv/set-up 2>/dev/null)" != "$wanted" ] || exit 0

for venv in .venv .venv-33; do
    if [ -L "$venv" ]; then
        echo "$source_dir/$venv is a link: installing here would change the environment of another" \
            "checkout. Remove the link." >&2
        exit 2
    fi
done
debian_packages test

environment() {
    [ -x "$1/bin/python" ] || python3 -m venv "$1"
    echo "installing Nova into $1 (some minutes the first time)"
    "$1/bin/python" -m pip install --quiet --no-compile --constraint "$2" --requirement requirements.txt \
        --requirement test-requirements.txt --requirement doc/requirements.txt
}

environment .venv-33 constraints-33.txt &
environment .venv constraints.txt
wait $!
# One after the other: both write what they know of the package into this folder.
for venv in .venv .venv-33; do
    "$venv/bin/python" -m pip install --quiet --no-deps --editable . --editable kronos_nova/client
done
printf '%s' "$wanted" > .venv/set-up
