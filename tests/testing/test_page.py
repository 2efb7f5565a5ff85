"""The examples of docs/testing.md, run by pytest as one file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_examples_on_the_page_work(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "test_examples.py").write_text("\n\n".join(blocks), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_examples.py"]
    # Without the plugins of other tests, which take longer to load than these tests to run.
    bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{''.join(blocks).count('def test_')} passed" in ended.stdout
    assert not (tmp_path / "freehold.db").exists(), "the app's own store was never opened"
