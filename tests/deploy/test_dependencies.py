"""What the image is made of, and what builds it: exact packages, known licences, and workflows with few rights."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "deploy" / "requirements.lock").read_text(encoding="utf-8")
LOCKED = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", LOCK, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|Unlicense|zlib|any-OSI)\b", re.IGNORECASE
)
WEAK = {
    "certifi": "MPL-2.0: a list of certificates, not changed",
    "psycopg": "LGPL-3.0-only: a library that is imported, not changed",
    "psycopg-binary": "LGPL-3.0-only: as psycopg",
    "python-flint": "MIT, over libraries under LGPL-3.0 that it links dynamically",
}
"""Packages under a licence that asks for its own source, which the image has unchanged."""


def name_of(requirement):
    return re.sub(r"[-_.]+", "-", requirement.name).lower()


def wanted():
    """What the package, its service and PostgreSQL need, as it is declared."""
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *extras["service"], *extras["postgres"]]
    return [Requirement(text) for text in listed]


def test_the_lock_has_what_the_image_needs_in_a_version_that_is_allowed():
    for requirement in wanted():
        if requirement.marker is not None and not requirement.marker.evaluate({"sys_platform": "linux"}):
            continue
        assert name_of(requirement) in LOCKED, f"{requirement}: make lock"
        assert requirement.specifier.contains(LOCKED[name_of(requirement)]), f"{requirement}: make lock"


def test_the_lock_names_digests_and_no_registry():
    assert LOCK.count("--hash=sha256:") >= len(LOCKED) > 20
    assert not re.search(r"https?://|--(extra-)?index|--find-links|@ ", LOCK)


@pytest.mark.parametrize("package", sorted(LOCKED))
def test_every_package_of_the_image_has_a_licence_that_allows_its_use(package):
    try:
        said = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed here")
    listed = [one for one in said.get_all("Classifier") or () if one.startswith("License ::")]
    text = " ".join([said.get("License-Expression") or "", (said.get("License") or "")[:200], *listed])
    assert package in WEAK or PERMISSIVE.search(text), f"{package}: {text or 'says nothing of its licence'}"


def test_every_exception_is_in_use():
    assert set(WEAK) <= set(LOCKED)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_nothing_else_and_runs_actions_by_their_digest(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.search(r"@[0-9a-f]{40}$", one) for one in used), used
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_lowest_versions_have_a_lane_and_a_job():
    lanes = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\nlowest:" in lanes and "--resolution lowest-direct" in lanes
    runs = [
        step.get("run", "")
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text())["jobs"].values()
        for step in job["steps"]
    ]
    assert "make lowest" in runs


def test_zones_are_known_where_the_system_has_none():
    (tzdata,) = [one for one in wanted() if one.name == "tzdata"]
    assert str(tzdata.marker) == 'sys_platform == "win32"'
