"""The Helm chart: its values, and what Helm makes of them, against Kubernetes, the command line and the settings."""

import base64
import copy
import json
import re
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from starter.api import GRACE as API_GRACE
from starter.codec_server import CodecAccess, create_codec_app, require_origins
from tests.deploy.product import ROOT, refusal, settings
from tests.deploy.rendering import CHART, NAMES, RENDERED, digest, helm, render, run_helm, values_file
from worker.codec import EncryptingCodec
from worker.composition import AGENT_GRACE, GRACE
from worker.payload_keys import PayloadKeys, read_payload_keys
from worker.processes import LEAVING

OF_OTHERS = {"PodMonitor"}
"""Kinds that Kubernetes itself does not have."""
KUBERNETES = ("1.34", "1.37")
DOMAIN = "app.kubernetes.io/"
KEYS = PayloadKeys({"k1": bytes(32)})
ACCESS = CodecAccess(tokens=None, organization="acme", required_scope="any")
RENDER = "The chart was changed. Run `python -m tests.deploy.rendering`, and look at what it changes."

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())


def merged(base: Any, over: Any) -> Any:
    """Values over defaults, as Helm lays them."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {key: merged(base.get(key), over[key]) if key in over else base[key] for key in base | over}
    return over


@cache
def rendered(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(each for each in yaml.safe_load_all((RENDERED / f"{name}.yaml").read_text()) if each)


def values(name: str) -> dict[str, Any]:
    return merged(DEFAULTS, yaml.safe_load(values_file(name).read_text()))


def of(name: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in rendered(name) if each["kind"] == kind]


def pods(name: str) -> list[dict[str, Any]]:
    """Every object that makes pods."""
    return of(name, "Deployment") + of(name, "Job")


def labels_of(owner: dict[str, Any]) -> dict[str, str]:
    return owner["spec"]["template"]["metadata"]["labels"]


def component(owner: dict[str, Any]) -> str:
    return labels_of(owner)[DOMAIN + "component"]


def container(owner: dict[str, Any]) -> dict[str, Any]:
    (only,) = owner["spec"]["template"]["spec"]["containers"]
    return only


def variables(owner: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in container(owner)["env"]}


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {})
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] in {"In", "NotIn"}
        if (labels.get(expression["key"]) in expression["values"]) != (expression["operator"] == "In"):
            return False
    return all(labels.get(key) == value for key, value in wanted.items())


def of_each(kind: str) -> pytest.MarkDecorator:
    """A test for every object of a kind, in both renderings."""
    found = [
        pytest.param(name, each, id=f"{name}:{each['metadata']['name']}")
        for name in NAMES
        for each in (pods(name) if kind == "pods" else rendered(name) if kind == "all" else of(name, kind))
    ]
    return pytest.mark.parametrize(("name", "each"), found)


# ---- Rendering ----


@pytest.mark.parametrize("name", NAMES)
def test_what_is_looked_at_here_was_made_of_the_chart_as_it_is(name):
    assert (RENDERED / f"{name}.yaml").read_text().splitlines()[0] == f"# {digest()}", RENDER


@pytest.mark.parametrize("name", NAMES)
def test_helm_says_the_same_today(name):
    program = helm()
    if program is None:
        pytest.skip("there is no helm; `python -m tests.deploy.rendering` brings one")
    done = render(program, name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (RENDERED / f"{name}.yaml").read_text().split("\n", 1)[1]
    linted = run_helm(program, "lint", "--strict", str(CHART), "--values", str(values_file(name)))
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--set-string", "versioning.current=9"), "is none of versioning.builds"),
        (
            ("--set", "versioning.deployment=", "--set-json", 'versioning.builds=[{"id":"1"},{"id":"2"}]'),
            "several builds are told apart",
        ),
        (("--set", "catalog.url=postgresql://"), "additional properties 'url' not allowed"),
        (("--set", "codec.enabled=true"), "/payloadKeys/secretName"),
    ],
)
def test_helm_refuses_with_a_sentence(change, told):
    program = helm()
    if program is None:
        pytest.skip("there is no helm; `python -m tests.deploy.rendering` brings one")
    done = render(program, "smallest", *change)
    assert done.returncode != 0
    assert told in done.stderr


def test_the_chart_is_of_the_release_that_it_is_beside():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert chart["appVersion"] == version == DEFAULTS["image"]["tag"] == DEFAULTS["versioning"]["builds"][0]["id"]


# ---- Values ----


@pytest.mark.parametrize("name", NAMES)
def test_the_values_of_these_tests_are_right(name):
    jsonschema.validate(values(name), SCHEMA, cls=jsonschema.Draft7Validator)


def test_the_schema_is_one():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_what_has_no_right_default_has_to_be_given():
    faults = {"/".join(map(str, each.path)) for each in jsonschema.Draft7Validator(SCHEMA).iter_errors(DEFAULTS)}
    assert faults == {
        "organization",
        "environment",
        "publicUrl",
        "catalog/secretName",
        "temporal/address",
        "tokens/jwksUrl",
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("organisation", "acme"),
        ("catalog/url", "postgresql://horarium@db/horarium"),
        ("catalog/secretName", ""),
        ("env/HORARIUM_CATALOG", "postgresql://horarium:word@db/horarium"),
        ("env/TEMPORAL_API_KEY", "word"),
        ("env/lower", "x"),
        ("image/tag", "latest"),
        ("image/digest", "sha256:12"),
        ("tokens/jwksUrl", "http://login.acme.example/keys"),
        ("temporal/address", "temporal-frontend"),
        ("temporal/address", ""),
        ("temporal/namespace", ""),
        ("temporal/config", {"secretName": "profiles", "secretKey": "../profiles"}),
        ("payloadKeys", {"secretName": "keys", "ids": []}),
        ("payloadKeys", {"secretName": "", "ids": ["k1"]}),
        ("payloadKeys", {"secretName": "keys", "ids": ["k1", "k1"]}),
        ("payloadKeys", {"secretName": "keys", "ids": ["k 1"]}),
        ("payloadKeys", {"secretName": "keys", "ids": ["k=1"]}),
        ("codec", {**DEFAULTS["codec"], "enabled": True, "origins": ["https://temporal.acme.example"]}),
        ("codec", {**DEFAULTS["codec"], "origins": ["https://temporal.acme.example/page"]}),
        ("signIn", {"issuer": "https://login.acme.example"}),
        ("signIn", {"issuer": "http://login.acme.example", "clientId": "horarium"}),
        ("versioning/builds", []),
        ("versioning/builds/0/id", "Build 1"),
        ("schedules/replicas", -1),
        ("schedules/resources/limits", {"memory": "much"}),
        ("api/ingress", {"enabled": True}),
        ("agents", [{"name": "ingestion"}]),
        ("agents", [{"name": "ingestion", "module": "examples; rm"}]),
        ("ceilings/totalRunsPerMonth", 0),
        ("metrics/port", 80),
        ("networkPolicy/elsewhere", [{"port": 8443}]),
        ("networkPolicy/traces", [{"port": 0, "to": []}]),
    ],
)
def test_a_value_that_cannot_be_right_is_refused(path, value):
    whole = copy.deepcopy(values("smallest"))
    *way, last = path.split("/")
    at: Any = whole
    for step in way:
        at = at[int(step) if isinstance(at, list) else step]
    at[last] = value
    assert [each.path for each in jsonschema.Draft7Validator(SCHEMA).iter_errors(whole)]


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({"payloadKeys": {"secretName": "keys", "ids": ["k1"]}}, False),
        ({"payloadKeys": {"secretName": "keys", "ids": ["k1"]}, "temporalUi": "https://temporal.acme.example"}, True),
        (
            {
                "payloadKeys": {"secretName": "keys", "ids": ["k1"]},
                "codec": {"origins": ["https://temporal.acme.example"]},
            },
            True,
        ),
        ({"temporalUi": "https://temporal.acme.example"}, False),
    ],
)
def test_a_codec_server_needs_keys_and_somebody_who_asks(change, right):
    whole = merged(merged(values("smallest"), {"codec": {"enabled": True}}), change)
    assert jsonschema.Draft7Validator(SCHEMA).is_valid(whole) == right


def test_where_temporal_is_may_stand_in_a_file_of_profiles_alone():
    told = {"address": "", "namespace": "", "config": {"secretName": "profiles"}}
    jsonschema.validate(merged(values("smallest"), {"temporal": told}), SCHEMA, cls=jsonschema.Draft7Validator)


def test_no_object_of_the_schema_takes_what_it_does_not_name():
    def closed(schema: Any, where: str) -> None:
        if isinstance(schema, list):
            for each in schema:
                closed(each, where)
        if not isinstance(schema, dict):
            return
        if "properties" in schema and schema.get("type") == "object":
            assert schema.get("additionalProperties") is False, where
        for key, each in schema.items():
            closed(each, f"{where}/{key}")

    closed(SCHEMA, "")


def test_every_value_that_can_be_given_stands_in_the_file_of_defaults():
    def named(schema: dict[str, Any], default: Any, where: str) -> None:
        for key, each in schema.get("properties", {}).items():
            if where + key == "global":
                continue
            assert key in default, where + key
            if each.get("type") == "object" and isinstance(default[key], dict):
                named(each, default[key], f"{where}{key}.")

    named(SCHEMA, DEFAULTS, "")


# ---- Objects ----


@pytest.mark.parametrize("version", KUBERNETES)
@of_each("all")
def test_an_object_is_one_of_kubernetes(name, each, version):
    if each["kind"] in OF_OTHERS:
        return
    kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_objects_have_one_name(name):
    known = [(each["kind"], each["metadata"]["name"]) for each in rendered(name)]
    assert len(known) == len(set(known))
    assert all(len(each) <= 63 for _, each in known)


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_made_only_named(name):
    assert of(name, "Secret") == of(name, "ConfigMap") == []
    for owner in pods(name):
        if component(owner) != "codec":
            assert "secretKeyRef" in variables(owner)["HORARIUM_CATALOG"]["valueFrom"]
        for variable, each in variables(owner).items():
            if variable == "HORARIUM_OIDC_CLIENT_SECRET":
                assert each["value"] in variables(owner), "it names the variable that holds it"
            elif re.search(r"SECRET|PASSWORD|API_KEY", variable):
                assert "value" not in each, variable


@of_each("pods")
def test_a_pod_has_no_rights_that_it_does_not_need(name, each):
    pod = each["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (int(user[1]), int(user[2]))
    assert container(each)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


@of_each("pods")
def test_a_pod_runs_a_command_that_exists(name, each):
    assert "command" not in container(each), "the image's own"
    assert refusal(container(each)["args"] + (["--name", "x"] if component(each) == "current" else [])) is None


@of_each("pods")
def test_a_pod_is_told_by_settings_that_exist_and_each_once(name, each):
    names = [variable["name"] for variable in container(each)["env"]]
    assert len(names) == len(set(names))
    assert set(names) <= settings()
    assert all(isinstance(variable.get("value", ""), str) for variable in container(each)["env"])


@of_each("pods")
def test_what_a_pod_mounts_is_there(name, each):
    pod = each["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(each)["volumeMounts"]}
    assert set(volumes) == set(mounts)
    assert variables(each)["HORARIUM_DATA"]["value"] == mounts["data"]
    for variable, given in variables(each).items():
        if variable.startswith("TEMPORAL_TLS_") and variable.endswith("_PATH"):
            assert given["value"].startswith(mounts["temporal-tls"] + "/")
        if variable == "TEMPORAL_CONFIG_FILE":
            assert given["value"].rpartition("/")[0] == mounts["temporal-config"]
    claims = {
        volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume
    }
    assert claims <= {claim["metadata"]["name"] for claim in of(name, "PersistentVolumeClaim")}
    assert bool(claims) == (component(each) in {"api", "runs", "agents"})


@of_each("pods")
def test_a_pod_has_an_account_that_is_made_in_time(name, each):
    account = each["spec"]["template"]["spec"]["serviceAccountName"]
    (made,) = [one for one in of(name, "ServiceAccount") if one["metadata"]["name"] == account]
    hooks = each["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    if hooks.startswith("pre-"):
        assert made["metadata"]["annotations"]["helm.sh/hook"] == hooks
        assert int(made["metadata"]["annotations"]["helm.sh/hook-weight"]) < int(
            each["metadata"]["annotations"]["helm.sh/hook-weight"]
        )


@of_each("Deployment")
def test_a_process_has_as_long_to_leave_as_it_may_take(name, each):
    needed = {"api": API_GRACE, "agents": AGENT_GRACE + LEAVING}.get(component(each), GRACE + LEAVING)
    given = timedelta(seconds=each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
    assert given >= needed + timedelta(seconds=10)


@of_each("Deployment")
def test_a_process_is_asked_whether_it_is_there_at_a_port_that_it_has(name, each):
    only = container(each)
    (port,) = only["ports"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert only[probe]["httpGet"]["port"] == port["name"]
    if component(each) == "codec":
        assert str(port["containerPort"]) == only["args"][only["args"].index("--port") + 1]
        served = {route.path for route in create_codec_app(EncryptingCodec(KEYS), ACCESS).routes}
        assert {
            only[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        } <= served
    elif component(each) == "api":
        assert str(port["containerPort"]) == only["args"][only["args"].index("--port") + 1]
        served = (ROOT / "horarium" / "api" / "routes" / "health.py").read_text()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert f'"{only[probe]["httpGet"]["path"]}"' in served
        assert only["livenessProbe"]["httpGet"]["path"] == "/healthz", "a catalog that is down is no reason to restart"
        assert only["readinessProbe"]["httpGet"]["path"] == "/readyz"
    else:
        assert str(port["containerPort"]) == variables(each)["HORARIUM_METRICS_PORT"]["value"]


@of_each("Deployment")
def test_a_deployment_selects_its_own_pods_and_no_others(name, each):
    selected = [one["metadata"]["name"] for one in pods(name) if selects(each["spec"]["selector"], labels_of(one))]
    assert selected == [each["metadata"]["name"]]
    (spread,) = each["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert selects(spread["labelSelector"], labels_of(each))


@pytest.mark.parametrize("name", NAMES)
def test_every_process_may_be_disturbed_one_at_a_time(name):
    budgets = of(name, "PodDisruptionBudget")
    for deployment in of(name, "Deployment"):
        (_,) = [budget for budget in budgets if selects(budget["spec"]["selector"], labels_of(deployment))]
    for budget in budgets:
        assert budget["spec"]["maxUnavailable"] == 1
        assert any(selects(budget["spec"]["selector"], labels_of(each)) for each in of(name, "Deployment"))
        assert not any(selects(budget["spec"]["selector"], labels_of(each)) for each in of(name, "Job"))


@pytest.mark.parametrize("name", NAMES)
def test_a_service_leads_to_pods_that_have_its_port(name):
    found = {}
    for service in of(name, "Service"):
        chosen = [each for each in pods(name) if selects({"matchLabels": service["spec"]["selector"]}, labels_of(each))]
        (led_to,) = [component(each) for each in chosen]
        (port,) = service["spec"]["ports"]
        assert port["targetPort"] in {each["name"] for each in container(chosen[0])["ports"]}
        found[service["metadata"]["name"]] = {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
        assert service["metadata"]["name"].endswith(f"-{led_to}")
    assert len(found) == (2 if values(name)["codec"]["enabled"] else 1)
    for ingress in of(name, "Ingress"):
        (rule,) = ingress["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"] == found[ingress["metadata"]["name"]]


# ---- Network ----


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_open_that_is_not_said(name):
    denying = [
        each
        for each in of(name, "NetworkPolicy")
        if set(each["spec"]["policyTypes"]) == {"Ingress", "Egress"} and not {"ingress", "egress"} & set(each["spec"])
    ]
    for owner in pods(name):
        assert any(selects(each["spec"]["podSelector"], labels_of(owner)) for each in denying), owner["metadata"][
            "name"
        ]


@of_each("NetworkPolicy")
def test_a_policy_is_of_pods_that_exist_and_says_what_it_is_about(name, each):
    assert any(selects(each["spec"]["podSelector"], labels_of(owner)) for owner in pods(name))
    assert {kind.lower() for kind in each["spec"]["policyTypes"]} >= {"ingress", "egress"} & set(each["spec"])
    named = {port["port"] for rule in each["spec"].get("ingress", []) for port in rule["ports"]}
    for owner in of(name, "Deployment"):
        if named and selects(each["spec"]["podSelector"], labels_of(owner)):
            assert {port["name"] for port in container(owner)["ports"]} == named


def ways_out(name: str, owner: dict[str, Any]) -> set[int]:
    return {
        port["port"]
        for each in of(name, "NetworkPolicy")
        if selects(each["spec"]["podSelector"], labels_of(owner))
        for rule in each["spec"].get("egress", [])
        for port in rule["ports"]
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_process_reaches_what_it_needs_and_no_more(name):
    network = values(name)["networkPolicy"]
    everybody = {53, *(way["port"] for way in (network["catalog"], network["temporal"], *network["traces"]))}
    elsewhere = {way["port"] for way in (network["https"], *network["elsewhere"])}
    for owner in pods(name):
        more = ways_out(name, owner) - everybody
        if component(owner) == "codec":
            assert ways_out(name, owner) == {53, network["https"]["port"]}, "neither the catalog nor Temporal"
            continue
        assert everybody <= ways_out(name, owner)
        if component(owner) in {"api", "runs", "controller"}:
            assert more == elsewhere
        elif owner["metadata"]["name"].endswith("-agents-ingestion"):
            assert more == {443}
        else:
            assert more == set(), owner["metadata"]["name"]


def test_who_may_come_in_is_who_was_named():
    network = values("everything")["networkPolicy"]
    inside = {"podSelector": {}}
    for each in of("everything", "NetworkPolicy"):
        for rule in each["spec"].get("ingress", []):
            (port,) = rule["ports"]
            wanted = {
                "http": network["apiFrom"] + network["metricsFrom"],
                "codec": network["apiFrom"],
                "metrics": network["metricsFrom"],
            }[port["port"]]
            assert rule["from"] == [inside, *wanted]


# ---- Builds ----


@pytest.mark.parametrize("name", NAMES)
def test_each_build_has_both_workers_and_says_which_it_is(name):
    builds = values(name)["versioning"]["builds"]
    for kind in ("schedules", "runs"):
        workers = [each for each in of(name, "Deployment") if component(each) == kind]
        assert [labels_of(each)["horarium/build"] for each in workers] == [build["id"] for build in builds]
        for worker, build in zip(workers, builds, strict=True):
            told = variables(worker)
            assert told["HORARIUM_BUILD_ID"]["value"] == build["id"]
            assert told["HORARIUM_DEPLOYMENT"]["value"] == values(name)["versioning"]["deployment"]
            assert container(worker)["image"].endswith(f":{build.get('tag') or values(name)['image']['tag']}")


def test_the_two_workers_scale_each_by_itself():
    replicas = {each["metadata"]["name"]: each["spec"].get("replicas") for each in of("everything", "Deployment")}
    assert replicas["acme-horarium-schedules-0-2-0"] == 3
    assert replicas["acme-horarium-runs-0-2-0"] == 4
    assert replicas["acme-horarium-schedules-0-1-0"] == 1
    assert replicas["acme-horarium-runs-0-1-0"] == 0
    assert replicas["acme-horarium-agents-plain"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_other_process_is_of_a_build(name):
    for each in pods(name):
        assert ("HORARIUM_BUILD_ID" in variables(each)) == (component(each) in {"schedules", "runs"})


@pytest.mark.parametrize("name", NAMES)
def test_the_build_that_is_named_is_made_current_afterwards(name):
    (job,) = [each for each in of(name, "Job") if component(each) == "current"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,post-upgrade,post-rollback"
    assert container(job)["args"][:3] == ["deployment", "current", values(name)["versioning"]["current"]]
    assert variables(job)["HORARIUM_DEPLOYMENT"]["value"] == values(name)["versioning"]["deployment"]
    assert job["spec"]["activeDeadlineSeconds"] > values(name)["versioning"]["waitSeconds"]


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_are_brought_up_before_anything_runs(name):
    (job,) = [each for each in of(name, "Job") if component(each) == "setup"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    waits = values(name)["setup"]["waitSeconds"]
    assert container(job)["args"] == ["setup", "--wait", str(waits)]
    assert 0 < waits < job["spec"]["activeDeadlineSeconds"], "it would be ended before it could say what is missing"


def test_what_scales_the_api_is_not_told_how_many_by_the_deployment():
    (scaler,) = of("everything", "HorizontalPodAutoscaler")
    (api,) = [each for each in of("everything", "Deployment") if component(each) == "api"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == api["metadata"]["name"]
    assert "replicas" not in api["spec"]
    assert "cpu" in container(api)["resources"]["requests"], "a share of nothing cannot be measured"


def test_what_watches_asks_at_ports_that_are_there():
    (monitor,) = of("everything", "PodMonitor")
    asked = {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]}
    watched = [each for each in of("everything", "Deployment") if component(each) != "codec"]
    assert asked == {port["name"] for each in watched for port in container(each)["ports"]}
    assert all(selects(monitor["spec"]["selector"], labels_of(each)) for each in of("everything", "Deployment"))


# ---- Temporal and payloads ----


def keys_of(owner: dict[str, Any]) -> list[tuple[str, str]]:
    """The payload keys that a pod is told of: id and file."""
    told = variables(owner).get("HORARIUM_PAYLOAD_KEYS", {"value": ""})["value"]
    return [tuple(each.split("=file:")) for each in told.split()]


@of_each("pods")
def test_every_process_is_given_all_payload_keys_in_their_order(name, each):
    given = values(name)["payloadKeys"]
    assert [key_id for key_id, _ in keys_of(each)] == given["ids"]
    pod = each["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(each)["volumeMounts"]}
    assert ("payload-keys" in volumes) == bool(given["secretName"])
    if given["secretName"]:
        secret = volumes["payload-keys"]["secret"]
        assert secret["secretName"] == given["secretName"]
        assert secret["defaultMode"] & 0o002 == 0, "what everybody may write is no key"
        files = {f"{mounts['payload-keys']}/{item['path']}": item["key"] for item in secret["items"]}
        assert files == {path: key_id for key_id, path in keys_of(each)}


def test_the_keys_that_a_pod_is_told_of_are_read_as_the_product_reads_them(tmp_path):
    (api,) = [each for each in of("everything", "Deployment") if component(each) == "api"]
    for key_id, _ in keys_of(api):
        (tmp_path / key_id).write_bytes(base64.b64encode(key_id.encode().ljust(32)))
        (tmp_path / key_id).chmod(0o440)
    told = variables(api)["HORARIUM_PAYLOAD_KEYS"]["value"].replace("/etc/horarium/payload-keys", str(tmp_path))
    keys = read_payload_keys({"HORARIUM_PAYLOAD_KEYS": told})
    assert keys is not None
    assert (keys.first, list(keys.by_id)) == ("k2", ["k2", "k1"])


def test_the_codec_server_is_told_of_neither_catalog_nor_temporal():
    (codec,) = [each for each in of("everything", "Deployment") if component(each) == "codec"]
    assert not {name for name in variables(codec) if name.startswith("TEMPORAL_") or name == "HORARIUM_CATALOG"}
    assert {volume["name"] for volume in codec["spec"]["template"]["spec"]["volumes"]} == {
        "tmp",
        "data",
        "payload-keys",
    }
    assert "envFrom" not in container(codec)
    origins = [word for flag, word in pairwise(container(codec)["args"]) if flag == "--origin"]
    assert require_origins(origins) == set(values("everything")["codec"]["origins"])
    assert variables(codec)["HORARIUM_REQUIRED_SCOPE"]["value"] == "schedules:read-payloads"


def test_every_process_that_speaks_with_temporal_is_told_how():
    told = ("TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE")
    for owner in pods("everything"):
        assert all((each in variables(owner)) == (component(owner) != "codec") for each in told), owner["metadata"][
            "name"
        ]
    for owner in pods("smallest"):
        assert not set(told) & set(variables(owner))


@pytest.mark.parametrize("name", NAMES)
def test_only_who_signs_for_destinations_is_given_their_secrets(name):
    wanted = set(values(name)["destinationSecrets"])
    for each in pods(name):
        given = {source["secretRef"]["name"] for source in container(each).get("envFrom", [])}
        assert (wanted <= given) == (component(each) in {"api", "runs", "controller"} or not wanted)
