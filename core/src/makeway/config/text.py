"""Read a configuration from TOML, and write it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from makeway.bounds import toml_of
from makeway.config.checking import validate
from makeway.config.tables import Config
from makeway.settings import structure, unstructure


def parse_toml(text: str, source: str) -> Config:
    """Read the native configuration.

    :raises ConfigError: with every problem found.
    """
    config = structure(toml_of(text, source), Config, source)
    validate(config, source)
    return config


def dump_toml(config: Config) -> str:
    """Write `config` so that reading it back gives an equal one."""
    import tomli_w

    return tomli_w.dumps(without_none(unstructure(config)))


def without_none(value: Any) -> Any:
    """Leave out None, which TOML cannot say and which is every such field's default."""
    if isinstance(value, Mapping):
        return {str(k): without_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [without_none(item) for item in value]
    return value
