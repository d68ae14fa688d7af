"""The files under deploy/, compose.yaml and Dockerfile: each is parsed, and says what the service does."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from counterpoint.ledger.remote_witness import is_address
from counterpoint.service import config, gauges, metrics, server, supervisor

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart"
UNIT = DEPLOY / "counterpoint.service"


def needs(tool):
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not on this machine")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def image():
    """The instructions of the last stage of the Dockerfile."""
    text = read("Dockerfile").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    last = max(number for number, (word, _) in enumerate(lines) if word == "FROM")
    assert lines[0][0] == "FROM" and all(word.isupper() for word, _ in lines)
    return dict(lines[last:])


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load(read("compose.yaml"))


def test_the_image_is_slim_has_no_root_one_volume_and_a_health_check(image):
    assert image["FROM"].endswith("-slim") and image["VOLUME"] == "/data"
    user, _, group = image["USER"].partition(":")
    assert int(user) > 0 and int(group) > 0
    assert "/ready" in image["HEALTHCHECK"] and image["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(image["ENTRYPOINT"]) == ["counterpoint"] and json.loads(image["CMD"])[0] == "serve"


def test_the_health_check_of_the_image_is_a_program_that_compiles(image):
    command = json.loads(image["HEALTHCHECK"].partition("CMD ")[2])
    compile(command[2], "health check", "exec")


def test_what_the_image_copies_is_there_and_is_let_in():
    ignored = read(".dockerignore").splitlines()
    for line in re.findall(r"^COPY (?!--from)(.*)$", read("Dockerfile"), re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists() and f"!{source}" in ignored, source


def test_the_service_of_compose_can_write_nowhere_but_to_its_volumes(compose):
    service = compose["services"]["service"]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["tmpfs"] == ["/tmp"]
    assert "no-new-privileges:true" in service["security_opt"] and "ports" not in service
    mounted = dict(one.split(":")[:2] for one in service["volumes"] if not one.startswith("."))
    assert mounted == {"data": "/data", "keys": "/keys", "witness": "/witness"} and set(mounted) < set(
        compose["volumes"]
    )


def test_only_the_proxy_of_compose_is_reached_from_outside(compose):
    services = compose["services"]
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]
    assert compose["networks"]["inside"]["internal"] is True
    assert {name: one["networks"] for name, one in services.items() if "outside" in one["networks"]} == {
        "proxy": ["outside", "inside"]
    }
    assert "reverse_proxy service:8000" in read("deploy/Caddyfile")


def test_compose_starts_things_in_order_and_has_every_file_that_it_mounts(compose):
    for name, service in compose["services"].items():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"} and other in compose["services"], name
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in compose["volumes"]


def test_the_grace_of_every_supervisor_is_longer_than_the_service_takes_to_stop(compose):
    least = supervisor.KILLED_AFTER
    assert int(compose["services"]["service"]["stop_grace_period"].rstrip("s")) > least
    assert int(re.search(r"^TimeoutStopSec=(\d+)s$", UNIT.read_text(), re.MULTILINE)[1]) > least
    (pod,) = [one for one in rendered() if one["kind"] == "StatefulSet"]
    assert pod["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > least


@pytest.mark.parametrize("where", ["compose", "chart"])
def test_the_configuration_that_is_deployed_is_understood(where):
    text = read("deploy/counterpoint.toml") if where == "compose" else values()["configuration"]
    settings = config.read(text)
    assert settings.place.in_postgres and settings.witness == "/witness/heads" and not is_address(settings.witness)
    assert settings.key_file == "/keys/ledger.key" and settings.data_key_file == "/keys/data.key"
    server.limits_of(settings)
    example = re.sub(r"^# (\[tables|\w+ = |columns)", r"\1", text, flags=re.MULTILINE)
    assert where == "chart" or list(config.read(example).data_sets) == ["people"]


@needs("systemd-analyze")
def test_the_unit_is_one_that_systemd_takes(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/counterpoint/bin/counterpoint", shutil.which("true") or "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    about = [line for line in said.stderr.splitlines() if UNIT.name in line]
    assert about == [], said.stderr


def test_the_unit_starts_the_command_without_rights_that_it_does_not_need():
    text = UNIT.read_text()
    assert "ExecStart=/opt/counterpoint/bin/counterpoint serve " in text
    for line in ("User=counterpoint", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict"):
        assert f"\n{line}\n" in text


def values():
    return yaml.safe_load((CHART / "values.yaml").read_text())


def rendered():
    """The objects of the chart. Its templates use values, the release's name and `quote`, and nothing else of Helm."""
    known = {f".Values.{name}": value for name, value in values().items()} | {".Release.Name": "counts"}

    def fill(found):
        name, _, filter_ = found[1].partition(" | ")
        assert filter_ in ("", "quote"), found[0]
        return json.dumps(known[name]) if filter_ else str(known[name])

    text = (CHART / "templates" / "service.yaml").read_text()
    return list(yaml.safe_load_all(re.sub(r"\{\{ (.*?) \}\}", fill, text)))


def test_the_chart_is_short_and_its_objects_belong_together():
    files = [path for path in CHART.rglob("*") if path.is_file()]
    assert sum(len(path.read_text().splitlines()) for path in files) < 150
    objects = {one["kind"]: one for one in rendered()}
    pod = objects["StatefulSet"]["spec"]["template"]
    assert objects["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    spec = pod["spec"]
    claimed = {one["metadata"]["name"] for one in objects["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    have = {one["name"] for one in spec["volumes"]} | claimed
    for container in (*spec["initContainers"], *spec["containers"]):
        assert {one["name"] for one in container["volumeMounts"]} <= have
        assert container["securityContext"]["readOnlyRootFilesystem"] and container["image"] == values()["image"]
    assert spec["securityContext"]["runAsNonRoot"] and "counterpoint.toml" in objects["ConfigMap"]["data"]
    ports = {one["name"] for one in spec["containers"][0]["ports"]}
    assert {
        spec["containers"][0][f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")
    } <= ports


@needs("helm")
def test_helm_takes_the_chart():
    subprocess.run(["helm", "lint", "--strict", CHART], check=True)


FAMILIES = {*metrics.FAMILIES, *gauges.FAMILIES}


def queried(expression):
    """The metrics that a query reads."""
    return {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"counterpoint_\w+", expression)}


def test_every_alert_reads_metrics_that_there_are_and_says_what_happened():
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    assert len(group["rules"]) >= 8
    for rule in group["rules"]:
        assert queried(rule["expr"]) <= FAMILIES, rule["alert"]
        assert rule["annotations"]["summary"] and rule["labels"]["severity"] in ("page", "ticket", "info")


def test_the_dashboard_shows_every_gauge_and_no_metric_that_there_is_not():
    dashboard = json.loads((DEPLOY / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = set().union(*map(queried, queries))
    assert shown <= FAMILIES and set(gauges.FAMILIES) <= shown
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@needs("promtool")
def test_prometheus_takes_the_alerts():
    subprocess.run(["promtool", "check", "rules", DEPLOY / "alerts.yaml"], check=True)


@needs("hadolint")
def test_the_linter_of_dockerfiles_is_content():
    subprocess.run(["hadolint", ROOT / "Dockerfile"], check=True)
