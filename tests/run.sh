#!/bin/sh
# Install the core, the plugins and the tools into the current environment and run the quick tests, which say at
# their end what they left out; --all runs everything. Without an environment, into .venv, as the README makes it.
# With --all a test that fails is tried once more and named as RERUN: thousands wait for real processes on machines
# that are busy. Every night they run without a second try.
# Other arguments go to pytest (-k gang), which then runs all that they name.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
"") set -- --quick ;;
--all)
    shift
    set -- --reruns 1 -r aR "$@"
    ;;
esac

if [ -z "${VIRTUAL_ENV:-}" ]; then
    [ -e .venv ] || python3 -m venv .venv
    . .venv/bin/activate
fi

projects="--editable core --editable testing"
for settings in plugins/*/pyproject.toml; do
    projects="$projects --editable ${settings%/pyproject.toml}"
done

python -m pip install --quiet --upgrade "pip>=25.1"  # the first that knows --group
python -m pip install --quiet --group dev
# The group has what builds them: an environment for each would take minutes.
# shellcheck disable=SC2086  # one word per project
python -m pip install --quiet --no-build-isolation $projects
# Tests start hundreds of children: without bytecode each would compile everything anew.
unset PYTHONDONTWRITEBYTECODE
# By day a test that passed passes again; at night sets are walked in another order each time.
[ -n "${MAKEWAY_PROFILE:-}" ] || export PYTHONHASHSEED="${PYTHONHASHSEED:-0}"
# One more than there are cores: many tests wait for processes, browsers and daemons.
python -m pytest -n "$(($(nproc) + 1))" --dist loadfile --no-loadscope-reorder "$@"
