"""Which Freehold this is."""

VERSION = "0.1.0"
