"""`python -m leasehold` is `leasehold`."""

from __future__ import annotations

from leasehold.cli import main

if __name__ == "__main__":
    main(prog_name="leasehold")
