"""The steps of `scripts/docs`: write the pages, check the built site.

python -m scripts.site pages
python -m scripts.site check
"""

from __future__ import annotations

import sys

from scripts.site.check import findings
from scripts.site.llms import write_llms
from scripts.site.pages import write_pages


def main(step: str) -> int:
    if step == "pages":
        write_pages()
        return 0
    write_llms()
    found = list(findings())
    for each in found:
        print(f"docs: {each}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
