#!/bin/bash
# What stack.sh, unstack.sh and clean.sh of devstack do for this plugin, with the functions that
# devstack has for plugins, on the services of a box:
#
#   stack.sh PHASE [STAGE]      such as "stack post-config", "unstack"
#
# From the environment: BOX (its folder), PYTHON (of its services), DATABASE_URL (with {} for the
# name of the database), and what local.conf may set. What would have become of services of the machine
# is written to BOX/services.
set -o errexit -o nounset

TOP_DIR=$(cd "$(dirname "$0")/../../.." && pwd)
DEST=$BOX
NOVA_CONF_DIR=$BOX/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
SERVICE_HOST=127.0.0.1
STACK_USER=$(id -un)
KRONOS_DIR=$TOP_DIR
declare -a PLUGINS=() ENABLED=(n-api n-cond n-sch n-cpu placement-api)

function define_plugin { PLUGINS+=("$1"); }
function plugin_requires { [[ " ${PLUGINS[*]} " == *" $1 "* ]]; }
function enable_service { ENABLED+=("$@"); }
function is_service_enabled { [[ " ${ENABLED[*]} " == *" $1 "* ]]; }
function trueorfalse {
    local value=${!2:-}
    case "${value,,}" in
        1|yes|true|enabled) echo True ;;
        0|no|false|disabled) echo False ;;
        *) echo "$1" ;;
    esac
}
function echo_summary { echo "== $*"; }
function sudo { "$@"; }
function get_python_exec_prefix { dirname "$PYTHON"; }
# It is there already, and services run from it; that it could be installed is all that is asked.
function setup_develop { "$PYTHON" -m pip install --quiet --no-deps --dry-run --editable "$1"; }
function install_package { dpkg-query --show "$@"; }
function restart_service { echo "restart $1" >>"$BOX/services"; }
function stop_service { echo "stop $1" >>"$BOX/services"; }
function database_connection_url { echo "${DATABASE_URL/\{\}/$1}"; }
function recreate_database {
    mariadb --user root --socket "$BOX/mariadb/mariadb.sock" \
        --execute "DROP DATABASE IF EXISTS $1; CREATE DATABASE $1"
}
function iniset { "$PYTHON" "$TOP_DIR/tests/e2e/devstack/ini.py" set "$@"; }
function iniset_multiline { iniset "$@"; }
function iniget_multiline { "$PYTHON" "$TOP_DIR/tests/e2e/devstack/ini.py" get "$@"; }

# shellcheck source=devstack/settings
source "$TOP_DIR/devstack/settings"
# shellcheck source=devstack/plugin.sh
source "$TOP_DIR/devstack/plugin.sh" "$@"
