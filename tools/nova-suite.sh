#!/bin/sh
# Nova's own functional tests, out of the installed package, with Kronos in the services:
#
#   tools/nova-suite.sh [--stock] [--nova 33|34] [--only REGEX] ... [modules...]
#
# doc/source/nova-suite.rst has the rest. What ran already is not run again: results are in
# .nova-suite, one file for each release, with and without Kronos.
set -eu

cd "$(dirname -- "$0")/.."

venv=.venv
if [ "${1:-}" = --nova ] || [ "${2:-}" = --nova ]; then
    # Either before or after --stock.
    stock=
    [ "$1" = --nova ] || { stock=$1; shift; }
    case "${2:-}" in
        34) ;;
        33) venv=.venv-33 ;;
        *) echo 'Kronos knows Nova 33 and 34.' >&2; exit 2 ;;
    esac
    shift 2
    set -- ${stock:+"$stock"} "$@"
fi
exec "$venv/bin/python" -m tests.nova_suite "$@"
