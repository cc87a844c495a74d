"""Builds of the workers at the command line: what an operator is told where there is nothing to show or to make current."""

import json
import uuid

import pytest

pytestmark = pytest.mark.server


@pytest.fixture
def deployment(program, temporal_server):
    def call(*arguments: str, **environment: str):
        return program("deployment", *arguments, TEMPORAL_ADDRESS=temporal_server.address, **environment)

    return call


def test_a_deployment_that_nobody_started_is_unknown(deployment):
    name = f"d-{uuid.uuid4()}"
    ended = deployment("show", "--name", name)
    assert ended.returncode == 1
    assert f"Temporal knows no worker deployment '{name}' in namespace 'default'. [deployment_unknown]" in ended.stderr
    assert "HORARIUM_BUILD_ID" in ended.stderr


def test_a_build_without_workers_does_not_become_current(deployment):
    """Or every schedule would wait for it."""
    ended = deployment("current", "0.2.0", "--wait", "0", "-o", "json", HORARIUM_DEPLOYMENT="horarium")
    assert ended.returncode == 1
    told = json.loads(ended.stderr)
    assert told["code"] == "workers_missing"
    assert "No schedule worker and no run worker of build '0.2.0' polls" in told["sentence"]
    assert "HORARIUM_BUILD_ID=0.2.0" in told["next_step"]


def test_the_name_of_the_deployment_is_asked_for(program):
    ended = program("deployment", "show")
    assert ended.returncode == 2
    assert "--name" in ended.stderr


def test_a_temporal_server_that_does_not_answer_is_told(program):
    ended = program("deployment", "show", "--name", "horarium")
    assert ended.returncode == 1
    assert "[temporal_unavailable]" in ended.stderr
