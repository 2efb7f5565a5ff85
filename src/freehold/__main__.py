"""`python -m freehold` is `freehold`."""

from __future__ import annotations

from freehold.cli import main

if __name__ == "__main__":
    main(prog_name="freehold")
