"""`leasehold config`: every setting with where it came from, and no secret."""

from __future__ import annotations

from tests.cli.shell import run

DIGEST = "ab" * 32


def test_tokens_are_shown_without_their_digest() -> None:
    tokens = f"viewer:sha256:{DIGEST},operator:env:TOKEN"
    for arguments in (("config",), ("config", "--json")):
        said = run(*arguments, env={"LEASEHOLD_HTTP_TOKENS": tokens})
        assert said.code == 0
        assert DIGEST not in said.out
        assert "viewer:sha256:…" in said.out
        assert "operator:env:TOKEN" in said.out
