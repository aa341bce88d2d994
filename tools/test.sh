#!/bin/bash
# Every test that fits into half an hour: style, documentation, unit, hostile and functional
# tests on Nova 34, a smoke set on Nova 33, and the demo in its fast form. Sets up what they need
# (tools/setup.sh) where that has not been done.
# The last line counts: N passed, N failed, N skipped; the lines before it name what failed.
# Exit status 1 when anything failed.
#
#   tools/test.sh            all of this
#   tools/test.sh --quick    style and unit tests alone, with fewer examples and without the slowest
#                            (tests/unit/slow.txt): under 4 minutes on two cores
set -u

case "${1:-}" in
    '' | --quick) ;;
    *) echo "usage: tools/test.sh [--quick]" >&2; exit 2 ;;
esac

cd "$(dirname -- "$0")/.." || exit 2
# Hundreds of processes load Nova. Without what Python keeps, each compiles it again.
unset PYTHONDONTWRITEBYTECODE
tools/setup.sh --if-needed || exit 2

passed=0 failed=0 skipped=0
declare -A pids
beside=$(mktemp -d)
trap 'rm -rf "$beside"' EXIT

# check NAME COMMAND...: a test of its own, passed when the command succeeds
check() {
    local name=$1
    shift
    echo "== $name, after $SECONDS s"
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "== $name: FAILED"
        echo "$name" >>"$beside/failed"
    fi
}

# suite NAME PYTHON PATH [REGEX]: the tests below a path, counted one by one
suite() {
    local name=$1 python=$2 path=$3
    shift 3
    echo "== $name, after $SECONDS s"
    # Nothing of an earlier run may be counted in its place.
    rm -rf .stestr
    "$python" -m stestr --test-path "$path" run --slowest "$@" || true
    local counts
    counts=$("$python" tools/count_results.py "$beside/failed") || {
        failed=$((failed + 1))
        echo "$name: no test ran" >>"$beside/failed"
        return
    }
    echo "== $name: $counts"
    local p f s
    read -r p _ f _ s _ <<<"${counts//,/}"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# begin NAME COMMAND...: start a check that leaves a processor to what follows beside it
begin() {
    local name=$1
    shift
    echo "== $name begins, after $SECONDS s"
    "$@" >"$beside/$name" 2>&1 &
    pids[$name]=$!
}

# end NAME: wait for what was begun, show what it said and count it
end() {
    check "$1" wait "${pids[$1]}"
    cat "$beside/$1"
}

# finish: print what failed and the counts, and exit
finish() {
    [ ! -s "$beside/failed" ] || sed 's/^/failed: /' "$beside/failed"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# By this hypothesis draws the same examples every time: what the gate says depends on the code alone.
export CI=true

[ "${1:-}" = --quick ] || begin 'documentation' \
    .venv/bin/python -m sphinx -W -q -b html doc/source doc/build/html
check 'ruff' .venv/bin/ruff check .
check 'mypy' .venv/bin/mypy
check 'shellcheck' shellcheck tools/*.sh tools/compare-plans devstack/settings devstack/plugin.sh \
    tests/e2e/devstack/stack.sh .ci/run
check 'doc8' .venv/bin/doc8 -q --max-line-length 120 doc/source README.rst CONTRIBUTING.rst
check 'codespell' .venv/bin/codespell kronos_nova tests bench doc/source devstack tools README.rst CONTRIBUTING.rst
check 'release notes' .venv/bin/reno lint
if [ "${1:-}" = --quick ]; then
    export KRONOS_EXAMPLES=0.1
    suite docs .venv/bin/python ./tests/docs --exclude-regex 'test_(snippets|monitoring|rule_recipes)'
    suite unit .venv/bin/python ./tests/unit --exclude-regex "$(cat tests/unit/slow.txt)"
    finish
fi
end 'documentation'
# They have commands of their own; one that cannot be imported would keep all from running.
rm -rf .stestr
check 'end-to-end tests are found' sh -c \
    '.venv/bin/python -m stestr init && .venv/bin/python -m stestr --test-path ./tests/e2e list >/dev/null'
suite docs .venv/bin/python ./tests/docs
# Random clouds: fewer than by default; doc/source/testing.rst has the command for more.
# Tests wait, and some workers have more to do than others: one more worker than there are processors.
workers=$(($(nproc) + 1))
# Those that take longest or go into every corner have commands of their own, which it has too.
KRONOS_EXAMPLES=0.15 suite unit .venv/bin/python ./tests/unit --concurrency "$workers" \
    --exclude-regex "$(cat tests/unit/long.txt)"
suite hostile .venv/bin/python ./tests/hostile --concurrency "$workers" \
    --exclude-regex "$(cat tests/hostile/long.txt)"
suite functional .venv/bin/python ./tests/functional --concurrency "$workers" \
    --exclude-regex "$(cat tests/functional/long.txt)"
# Those of Nova's own tests that migrate or allocate the most in a short time; doc/source/nova-suite.rst
# has the command for all.
check 'nova-suite' tools/nova-suite.sh --tests-from tests/nova_suite/gate.txt \
    --results .nova-suite/gate --afresh --repeat 1
# Its services wait for each other most of the time, so the next tests run beside it.
begin demo env KRONOS_DEMO_VENV="$PWD/.venv" tools/demo.sh --fast
# Nova 33's conductor and scheduler, and its test fixtures, are at home under eventlet.
export OS_NOVA_DISABLE_EVENTLET_PATCHING=false
# Its plugins import trio, which cannot be imported under eventlet.
export HYPOTHESIS_NO_PLUGINS=1
suite nova-33 .venv-33/bin/python ./tests/functional --concurrency "$workers" \
    'functional.test_(loading|balancing|live_migration)' \
    'inventory.*columns_say.*(objects_say|pinned_to|is_old)' \
    'claims.*(boot_and_delete|never_counted_twice|survives_audit)' 'cmd.test_commands'
unset OS_NOVA_DISABLE_EVENTLET_PATCHING HYPOTHESIS_NO_PLUGINS
# The wheel, in an environment of its own beside a stock Nova; one environment for all of them.
suite packaging .venv/bin/python ./tests/packaging --worker-file tests/packaging/workers.yaml
end demo
finish
