#!/bin/sh
# Everything that developing and testing need, on Debian: packages (as root) and the virtual
# environments .venv (Nova 34) and .venv-33 (Nova 33), with versions known to work together.
# Run again after a change of requirements; what is there already is kept.
set -eu

cd "$(dirname -- "$0")/.."

packages=$(sed -n 's/^\([a-z0-9][a-z0-9.+-]*\)[[:space:]]*\[platform:dpkg .*test].*/\1/p' bindep.txt)
missing=
for package in $packages; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    # The packages' own services are not wanted: tests start what they need, on their own ports.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
        trap 'rm -f "$policy"' EXIT
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    # shellcheck disable=SC2086 # one word a package
    apt-get -qq install --yes --no-install-recommends $missing >/dev/null
fi

# pbr takes the version from git, which neither has to be here nor to have the history.
git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || export PBR_VERSION="${PBR_VERSION:-0.0.1}"

environment() {
    [ -x "$1/bin/python" ] || python3 -m venv "$1"
    "$1/bin/python" -m pip install --quiet --constraint "$2" --editable . \
        --requirement test-requirements.txt --requirement doc/requirements.txt
}

environment .venv constraints.txt
environment .venv-33 constraints-33.txt
