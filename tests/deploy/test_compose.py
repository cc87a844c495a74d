"""The compose file: what it names exists, what it opens is this machine's alone, and no secret has a default."""

import base64
import copy
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec.compose_spec import PyCompose

from starter.cli.api_commands import CODEC_PORT
from starter.temporal_server import DYNAMIC_CONFIG
from tests.deploy.product import DEPLOY, ROOT, refusal, settings
from worker.payload_keys import read_payload_keys

FOLDER = DEPLOY / "compose"
TEXT = (FOLDER / "compose.yaml").read_text()
EXAMPLE = (FOLDER / ".env.example").read_text()
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?:(:-|:\?)([^}]*))?\}")


def filled(text: str) -> str:
    """The file as compose reads it where each secret is given and everything else is left as it is."""
    plain = text.replace("$$", "\0")
    return VARIABLE.sub(lambda match: match[3] if match[2] == ":-" else "given", plain).replace("\0", "$")


COMPOSE = yaml.safe_load(filled(TEXT))
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("horarium")}


def test_it_has_all_that_makes_an_installation():
    assert set(OURS) == {"setup", "api", "schedules", "runs", "controller", "codec", "agents", "example-files"}
    assert set(SERVICES) - set(OURS) == {
        "temporal-db",
        "temporal-schema",
        "temporal",
        "temporal-namespace",
        "temporal-ui",
        "catalog",
        "prometheus",
        "grafana",
    }


@pytest.mark.parametrize("name", sorted(set(OURS) - {"example-files"}))
def test_a_service_of_ours_runs_a_command_that_exists(name):
    assert refusal(SERVICES[name]["command"]) is None


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_ours_is_told_by_settings_that_exist(name):
    assert set(SERVICES[name]["environment"]) <= settings()


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_ours_has_no_rights_that_it_does_not_need(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "user" not in service, "the image's own is not root"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_port_is_of_this_machine_alone(name):
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)
    if SERVICES[name].get("network_mode") == "host":
        assert "networks" not in SERVICES[name]
        assert "--host" not in SERVICES[name]["command"], (
            "a codec server listens at loopback where it is told nothing else"
        )
    else:
        assert SERVICES[name].get("network_mode") is None


def test_no_two_services_want_the_same_port():
    ports = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports))


def test_no_secret_has_a_default_and_each_is_in_the_example_and_empty():
    required = {match[1] for match in VARIABLE.finditer(TEXT) if match[2] == ":?"}
    assert required == {"CATALOG_PASSWORD", "TEMPORAL_DB_PASSWORD", "GRAFANA_PASSWORD"}
    for name in required:
        assert f"\n{name}=\n" in EXAMPLE
    for service in SERVICES.values():
        for name, value in (service.get("environment") or {}).items():
            if re.search(r"PASSWORD|PWD|SECRET|KEY$", name) and name != "HORARIUM_OIDC_CLIENT_SECRET":  # names another
                assert value == "given", name


def test_the_example_names_each_variable_and_no_other():
    named = set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.MULTILINE))
    assert named == {match[1] for match in VARIABLE.finditer(TEXT)}


def test_what_the_example_shows_as_default_is_the_default():
    shown = dict(re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    defaults = {match[1]: match[3] for match in VARIABLE.finditer(TEXT) if match[2] == ":-"}
    assert shown == defaults


def test_what_is_secret_here_is_never_committed():
    ignored = (FOLDER / ".gitignore").read_text().split()
    assert {".env", "secrets.env", "payload-keys.env"} <= set(ignored)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_an_image_has_a_version(name):
    assert re.fullmatch(r"[a-z0-9/-]+:v?\d[\w.-]*", SERVICES[name]["image"])


def test_what_is_mounted_and_built_from_exists():
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                path = (FOLDER / source).resolve()
                assert path.is_file(), (name, source)
                assert volume.endswith(":ro"), f"{name} may not write {source}"
            else:
                assert source in COMPOSE["volumes"], (name, source)
        if build := service.get("build"):
            assert (FOLDER / build["context"]).resolve() == ROOT
            assert f"AS {build['target']}\n" in (ROOT / build["dockerfile"]).read_text()


def test_what_a_service_waits_for_can_come_true():
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
            else:
                assert how["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"] == "on-failure", f"{other} would be started again when it is done"


def test_nothing_of_ours_runs_before_the_catalog_has_its_tables():
    assert set(SERVICES["setup"]["depends_on"]) == {"catalog", "temporal-namespace"}
    for name in set(OURS) - {"setup", "agents", "codec"}:
        assert "setup" in SERVICES[name]["depends_on"], name
    assert set(SERVICES["agents"]["depends_on"]) == {"example-files"}


def test_what_prepares_waits_for_a_temporal_that_listens_and_does_not_answer_yet():
    setup = SERVICES["setup"]
    assert setup["command"][:2] == ["setup", "--wait"]
    assert int(setup["command"][2]) >= 60
    # And where that was not enough, it failed, so that nothing of ours begins, and is tried again.
    assert setup["restart"] == "on-failure"


def files_of(name: str) -> list[str]:
    """The files of variables that a service is given."""
    given = SERVICES[name].get("env_file", [])
    assert all(each["required"] is False for each in given), "it starts without"
    return [each["path"] for each in given]


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_process_is_given_the_keys_of_payloads(name):
    assert "payload-keys.env" in files_of(name)
    assert ("secrets.env" in files_of(name)) == (name in {"api", "runs", "controller"})


@pytest.mark.parametrize("name", sorted(set(SERVICES) - set(OURS)))
def test_nobody_else_is_given_secrets_of_ours(name):
    assert files_of(name) == []


def example_of_keys() -> dict[str, str]:
    """What stands in the example of payload keys once it is filled in."""
    text = (FOLDER / "payload-keys.env.example").read_text()
    return dict(re.findall(r"^#([A-Z_0-9]+)=(.*)$", text, re.MULTILINE))


def test_the_example_of_payload_keys_is_read_once_it_is_filled_in():
    keys = read_payload_keys({**example_of_keys(), "HORARIUM_SECRET_PAYLOAD_K1": base64.b64encode(bytes(32)).decode()})
    assert keys is not None
    assert keys.first == "k1"
    assert example_of_keys()["HORARIUM_SECRET_PAYLOAD_K1"] == ""


def test_the_codec_server_is_started_by_choice_and_answers_temporals_pages_alone():
    codec = SERVICES["codec"]
    assert codec["profiles"] == ["codec"]
    assert [name for name in SERVICES if "profiles" in SERVICES[name]] == ["codec"]
    assert not any("CATALOG" in name or name.startswith("TEMPORAL_") for name in codec["environment"])
    (port,) = SERVICES["temporal-ui"]["ports"]
    origins = [word for flag, word in pairwise(codec["command"]) if flag == "--origin"]
    assert origins == [f"http://{host}:{port.split(':')[1]}" for host in ("127.0.0.1", "localhost")]
    assert f"http://127.0.0.1:{CODEC_PORT}/healthz" in codec["healthcheck"]["test"][-1]
    assert f"http://127.0.0.1:{CODEC_PORT}\n#TEMPORAL_CODEC_ENDPOINT=\n" in EXAMPLE


def test_a_check_of_health_asks_the_port_that_is_served():
    api = SERVICES["api"]
    port = api["command"][api["command"].index("--port") + 1]
    assert f":{port}/readyz" in api["healthcheck"]["test"][-1]
    for name in ("schedules", "runs", "controller", "agents"):
        service = SERVICES[name]
        assert f":{service['environment']['HORARIUM_METRICS_PORT']}/metrics" in service["healthcheck"]["test"][-1]


def test_a_check_of_health_is_a_program_that_can_be_run():
    for name in ("api", "schedules", "codec"):
        how, program, option, script = SERVICES[name]["healthcheck"]["test"]
        assert (how, program, option) == ("CMD", "python", "-c")
        compile(script, name, "exec")


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.sh")), ids=lambda path: path.name)
def test_a_script_can_be_read_by_a_shell(script: Path):
    done = subprocess.run(["sh", "-n", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_dashboard_is_looked_for_where_it_is_mounted():
    (provider,) = yaml.safe_load((FOLDER / "grafana" / "dashboards.yaml").read_text())["providers"]
    mounted = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert any(path.startswith(provider["options"]["path"] + "/") for path in mounted)


def test_the_files_of_the_example_are_laid_out_as_its_schedule_names_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HORARIUM_DATA", str(tmp_path))
    script = FOLDER / "example_files.py"
    for _ in range(2):
        exec(compile(script.read_text(), script.name, "exec"), {})
    request = yaml.safe_load((ROOT / "examples" / "ingestion" / "schedule.yaml").read_text())["run"]
    content = tmp_path / "content" / "local" / "dev"
    assert (content / "inputs" / f"{request['input']}.json").is_file()
    assert (content / "outputs" / request["output_target"]).is_dir()
    assert any((tmp_path / "example-files").rglob("*.csv"))


def names_as_specified(document: Any) -> list[str]:
    """The services that an independent reader of the compose specification finds. Raises `ValueError` for what it refuses."""
    read = PyCompose.from_yaml(yaml.safe_dump(document))
    read.validate()
    return sorted(read.service_names())


def test_the_file_is_one_of_the_specification():
    assert names_as_specified(COMPOSE) == sorted(SERVICES)


@pytest.mark.parametrize(
    ("service", "key", "value"),
    [
        ("api", "dependson", {"setup": {"condition": "service_healthy"}}),
        ("api", "ports", ["eighty:8080"]),
        ("api", "restart", "sometimes"),
        ("api", "depends_on", {"setup": {"condition": "service_ready"}}),
        ("codec", "network_mode", ["host"]),
        ("schedules", "stop_grace_period", "soon"),
        ("catalog", "networks", ["outside"]),
    ],
)
def test_the_reader_of_the_specification_finds_what_is_broken(service, key, value):
    broken = copy.deepcopy(COMPOSE)
    broken["services"][service][key] = value
    with pytest.raises(ValueError, match=service):
        names_as_specified(broken)


def test_the_temporal_server_takes_turns_as_the_one_of_dev_does():
    told = yaml.safe_load((FOLDER / "temporal-dynamic.yaml").read_text())
    assert {name: values[0]["value"] for name, values in told.items()} == DYNAMIC_CONFIG
