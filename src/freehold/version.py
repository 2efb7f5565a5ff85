"""The version of Freehold."""

VERSION = "0.1.0"
