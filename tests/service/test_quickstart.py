"""The quickstart of the guide, as it is written: from one command to the first answer, with curl and from Python."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.service.process import Served

import counterpoint as cp

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "serving.md"
START = "counterpoint serve --demo"


def shell_blocks():
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)]


def run(block, service):
    """What each curl of a block answers; the address and the key are those of this service."""
    printed = block.replace("http://127.0.0.1:8000", service.url).replace("cp_...", service.key)
    done = subprocess.run(
        ["sh", "-eu", "-c", printed.replace("curl -s ", "curl -s -w '\\n' ")],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "KEY": service.key, "no_proxy": "*"},
        capture_output=True,
        text=True,
        check=True,
        cwd=service.folder,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the quickstart is run with curl, which is not installed")
def test_one_command_leads_to_the_first_answer_with_curl_and_from_python(tmp_path):
    start, ask, people = shell_blocks()
    assert start == START
    with Served(tmp_path, *START.split()[2:]) as service:
        (answer,) = run(ask, service)
        assert answer["cost"]["text"] == "PureDP(0.1)" and 30 < answer["value"] < 55
        with cp.connect(service.url, key=service.key) as connection:
            mine = connection.session("people").ask(cp.mean("age"), epsilon="0.1", id="first question")
            assert float(mine) == answer["value"], "the same question under the same id"
            assert connection.session("people").loss == cp.ApproxDP("0.1", 1e-6)
        added, key, grant = run(people, service)
        assert added == {"name": "ann", "role": "analyst"} and grant["rule"] == "Filter(PureDP(0.5))"
        with cp.connect(service.url, key=key["key"]) as connection:
            assert connection.session("people").ask(cp.count(), epsilon="0.1").cost == cp.PureDP("0.1")
            with pytest.raises(cp.BudgetExceeded):
                connection.session("people").ask(cp.count(), epsilon=1)


def test_the_page_starts_what_the_first_command_says():
    text = PAGE.read_text(encoding="utf-8")
    started = re.findall(r'"([^"]+)"', text.partition("command = [")[2].partition("]")[0])
    assert started[-4:] == [*START.split()[1:], "--port", "0"] and "http://127.0.0.1:8000" in text
