"""The guide's way from nothing to TLS, a backup and a restore is walked, command by command."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from counterpoint.service.gauges import FAMILIES

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "deploying.md").read_text(encoding="utf-8")
BY_HAND = PAGE.partition("## In containers")[0]


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl", "openssl"))), reason="bash, curl or openssl is missing")
def test_the_commands_of_the_first_part_run_as_they_stand(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", BY_HAND, re.DOTALL)).replace("8443", str(port))
    stop = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "counterpoint"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m counterpoint "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", stop + script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"status":"ready"') == 2 and '{"file":"ledger-' in done.stdout
    assert "not serving people. LedgerRolledBack" in done.stdout and "its budget counts as spent" in done.stdout
    assert re.search(r"people: \d+ entries hold", done.stdout)


def test_the_table_of_gauges_says_what_the_metrics_say():
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", PAGE, re.MULTILINE))
    assert {name: shown.get(name) for name in FAMILIES} == FAMILIES
