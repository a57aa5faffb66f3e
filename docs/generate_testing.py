"""Write the rules of the contracts into docs/testing.md: each test's docstring says what its rule is.

``python docs/generate_testing.py``
"""

from __future__ import annotations

import inspect
from pathlib import Path

from makeway_testing import contracts

PAGE = Path(__file__).with_name("testing.md")
BEGIN = "<!-- rules: made by docs/generate_testing.py -->"
END = "<!-- end of rules -->"
TITLES = {
    "Contract": "Every plugin",
    "DecisionContract": "Every plugin that takes part in decisions",
    "PreemptPolicyContract": "`PreemptPolicyContract` (`policy.preempt`)",
    "SelectContract": "`SelectContract` (`policy.select`)",
    "GangContract": "`GangContract` (`policy.gang`)",
    "PriorityContract": "`PriorityContract` (`policy.priority`)",
    "SearchContract": "`SearchContract` (`policy.search`)",
    "ActionContract": "`ActionContract` (`makeway_preempt_action`, `policy.plugins`)",
    "ProtectContract": "`ProtectContract` (`policy.protect`)",
    "ReaderContract": "Every reader",
    "WorkloadReaderContract": "`WorkloadReaderContract` (`Dialect.workloads`)",
    "ConfigReaderContract": "`ConfigReaderContract` (`Dialect.configs`)",
    "WorldContract": "`WorldContract` (`makeway_world`)",
}


def rules_of(name: str) -> list[str]:
    """Return the rules that a contract adds to those of its base."""
    tests = [test for key, test in vars(getattr(contracts, name)).items() if key.startswith("test_")]
    texts = [(inspect.getdoc(test) or "").partition("\n\n")[0] for test in tests]
    return [" ".join(text.split()) for text in texts]


def rules() -> str:
    """Return the lists of all contracts."""
    parts = []
    for name, title in TITLES.items():
        parts.append("\n".join([f"**{title}**", "", *(f"- {rule}" for rule in rules_of(name))]))
    return "\n\n".join(parts)


def page(text: str) -> str:
    """Return the page with the rules as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{rules()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
