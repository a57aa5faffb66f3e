"""Settings of the site: ``python -m sphinx -W --keep-going -c docs . docs/_build`` at the root.

The source folder is the whole repository, so that the same links hold in the site and in a checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path

import makeway

sys.path.append(str(Path(__file__).parent))

project = "makeway"
author = "the makeway developers"
release = version = makeway.__version__

extensions = ["myst_parser", "command_help"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/rules/*.md",
    "examples/*/README.md",
    "examples/plugins/*/README.md",
    "core/README.md",
    "plugins/*/README.md",
    "testing/README.md",
]
nitpicky = True

# Anchors as other sites make them of headings, so that links to them are checked here and hold there.
myst_heading_anchors = 4
suppress_warnings: list[str] = []

html_theme = "furo"
html_title = f"makeway {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
highlight_language = "none"
