#!/bin/sh
# Install the core, the plugins and the tools into the current environment and run all tests.
# Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

projects="--editable core"
for settings in plugins/*/pyproject.toml; do
    projects="$projects --editable ${settings%/pyproject.toml}"
done

python -m pip install --quiet --upgrade "pip>=25.1"  # the first that knows --group
# shellcheck disable=SC2086  # one word per project
python -m pip install --quiet --group dev $projects
python -m pytest -n 2 --dist loadgroup "$@"
