"""All tests under each supported Python that is installed: ``nox``, or ``nox -s tests-3.13 -- -k gang`` for some."""

import nox

nox.options.error_on_missing_interpreters = False
PROJECT = nox.project.load_toml("core/pyproject.toml")


@nox.session(python=nox.project.python_versions(PROJECT))
def tests(session: nox.Session) -> None:
    """Let tests/run.sh install everything into the session's environment; arguments go to pytest."""
    session.run("sh", "tests/run.sh", *(session.posargs or ["--all"]), external=True)
