"""Where the site is made from, and where to."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The pages as the site tool reads them: those of docs/ and the generated ones.
SOURCE = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
CONFIGURATION = ROOT / "zensical.toml"
#: The folder of the pages that are made from the code.
LOOK_UP = "look-up"
