"""What the other tests here ask the product for is what it says."""

from tests.deploy.product import commands_in, refusal, settings


def test_the_settings_of_the_workers_are_known():
    assert settings() >= {"HORARIUM_CATALOG", "HORARIUM_BUILD_ID", "SCHEDULER_EVENT_RETENTION_DAYS", "TEMPORAL_ADDRESS"}
    assert "HORARIUM_CATALOGUE" not in settings()


def test_a_command_that_is_there_is_taken():
    assert refusal(["worker", "agents", "examples.ingestion"]) is None
    assert refusal(["api", "--host", "0.0.0.0", "--port", "8080"]) is None


def test_a_command_an_option_or_an_argument_that_is_not_there_is_refused():
    assert refusal(["serve"]) is not None
    assert refusal(["api", "--hosts", "0.0.0.0"]) is not None
    assert refusal(["api", "--port", "eighty"]) is not None
    assert refusal(["db", "downgrade"]) is not None
    assert refusal(["enable"]) is not None


def test_commands_are_found_in_fences_and_between_backticks():
    text = "Use `horarium pause ID`.\n\n```sh\n# horarium nothing\nX=1 horarium audit --grace 5 | tail -1  # all\n```\n"
    assert list(commands_in(text)) == [["audit", "--grace", "5"], ["pause", "ID"]]


def test_a_line_of_shell_is_read_as_a_shell_reads_it():
    line = "x=$(horarium list > /dev/null) && horarium authority stop --because 'A; b' > out || true"
    assert list(commands_in(f"```sh\n{line}\n```\n")) == [["list"], ["authority", "stop", "--because", "A; b"]]


def test_what_a_container_is_given_is_found_too():
    lines = "docker compose -f x.yaml run --rm setup token --sign-in\nkubectl exec deploy/x -- horarium audit\nhelm install horarium ./horarium"
    assert list(commands_in(f"```sh\n{lines}\n```\n")) == [["token", "--sign-in"], ["audit"]]
