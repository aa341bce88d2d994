#!/bin/sh
# To be sourced, with source_dir set: what the scripts here need of the machine.

: "${source_dir:?}"

# Each process would compile what it loads again.
unset PYTHONDONTWRITEBYTECODE

# debian_packages MARK: install what bindep.txt marks so and is missing. As root.
debian_packages() {
    missing=
    named=$(sed -n "s/^\([a-z0-9][a-z0-9.+-]*\)[[:space:]]*\[platform:dpkg .*$1.*/\1/p" \
        "$source_dir/bindep.txt")
    for package in $named; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
            missing="$missing $package"
    done
    install_missing
}

# newer_from_backports PACKAGE VERSION: install Debian's backport of a package where what is there is
# older. As root.
newer_from_backports() {
    dpkg --compare-versions "$(dpkg-query -W -f '${Version}' "$1")" lt "$2" || return 0
    missing=$1
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)-backports
    # From where Debian itself is installed here. Nothing but what is asked for comes from there.
    # shellcheck disable=SC2016 # what apt-get fills in
    from=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
        'Label: Debian' | head -n 1)
    echo "deb $from $release main" > "/etc/apt/sources.list.d/$release.list"
    install_missing --target-release "$release"
}

# install_missing OPTION...: of apt-get
install_missing() {
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "Not Debian. Install these yourself:$missing" >&2
        return 2
    fi
    echo "installing Debian packages:$missing"
    # The packages' own services are not wanted: what runs here starts its own, on its own ports.
    policy=/usr/sbin/policy-rc.d
    if [ -e "$policy" ]; then
        policy=
    else
        trap 'rm -f "$policy"' EXIT INT TERM
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    # shellcheck disable=SC2086 # one word a package
    apt-get -qq install --yes --no-install-recommends "$@" $missing >/dev/null
    if [ -n "$policy" ]; then
        rm -f "$policy"
        trap - EXIT INT TERM
    fi
}

# pbr takes the version from git, which neither has to be here nor to have the history.
git -C "$source_dir" rev-parse --verify --quiet HEAD >/dev/null 2>&1 ||
    export PBR_VERSION="${PBR_VERSION:-0.0.1}"
