"""The contract on scheduling agent runs: what it says of a client, sentence by sentence, and which tests of Node hold it."""

from pathlib import Path

import pytest

from . import node

TESTS = Path(__file__).parents[2] / "clients" / "typescript" / "test"

LIFE = "api.test.js::a schedule is published, read, enabled, paused and retired"

HELD = {
    "Read the current environment before publication and include its expected_environment_epoch and reset_generation.": (
        "api.test.js::the environment is read with the two numbers that a publication names",
        "api.test.js::whoever reviewed another generation or environment changes nothing",
    ),
    "Use expected_revision: 0 for its first version, or the current head revision when publishing a replacement.": (
        "api.test.js::the first version expects revision zero and a replacement the head",
    ),
    "A replacement does not silently replace an enabled version.": (
        "api.test.js::a replacement leaves the enabled version, and whoever pauses names that one",
    ),
    "const published = await client.schedules.publish(scope, {…}, publicationKey); … getVersion(scope, published.resource_id)": (
        LIFE,
        "requests.test.js::a mutation is one request with the caller's key and the request as its body",
    ),
    "TypeScript uses getVersion and setEnabled for the corresponding operations.": (LIFE,),
    "SDKs snapshot requests before asynchronous authentication": (
        "requests.test.js::a request is copied before the token is awaited",
    ),
    "and never retry these mutations automatically.": (
        "failures.test.js::a server that drops its response has seen exactly one request, and the outcome is unknown",
        "failures.test.js::an answer that never ends is given up, silent or not",
        "failures.test.js::an answer that asks to come again is not followed",
        "failures.test.js::an answer that says nothing about the change leaves it unknown, and refuses a read",
    ),
    "Publication and reads accept an appropriately scoped key or human session. Enable, pause and retire a human one.": (
        "api.test.js::a key publishes and reads, and a human session alone changes",
    ),
    "Submit version, expected_generation, both environment preconditions and the explicit enabled boolean.": (
        LIFE,
        "api.test.js::whoever reviewed another generation or environment changes nothing",
    ),
    "Use generation zero when no activation exists.": (
        LIFE,
        "answers.test.js::a schedule that was never enabled has no activation and no observation",
    ),
    "An enabled version can differ from the publication head: inspect activation.version before pausing it.": (
        "api.test.js::a replacement leaves the enabled version, and whoever pauses names that one",
    ),
    "Retirement submits the same exact reference and generation preconditions without enabled.": (
        LIFE,
        "api.test.js::publishing another version cannot revive a retired schedule",
    ),
    "It does not erase historical versions or receipts. Publishing another version cannot revive a retired schedule.": (
        "api.test.js::publishing another version cannot revive a retired schedule",
    ),
    "list accepts limit from 1-50, an optional after schedule UUID and include_retired. The default limit is 25.": (
        "api.test.js::list takes a limit, a cursor and include_retired, and goes on with next_cursor",
    ),
    "Continue with the returned next_cursor.": (
        "api.test.js::list takes a limit, a cursor and include_retired, and goes on with next_cursor",
    ),
    "get reads the current publication head; getVersion reads an exact immutable version.": (
        "api.test.js::get reads the head or a revision, and getVersion an exact version",
    ),
    "Keep the reviewed request, selected account and environment, and caller-generated idempotency key": (
        "failures.test.js::a server that drops its response has seen exactly one request, and the outcome is unknown",
    ),
    "If a response is lost, inspect current state and explicitly retry the same body and key": (
        "api.test.js::a lost answer is recovered by the same key and body",
        "api.test.js::a lost request leaves no receipt and is done once when repeated",
    ),
    "Do not replace the key, rebuild the request from a newer head": (
        "api.test.js::a lost answer is recovered by the same key and body",
    ),
    "A reset or revoked authority can refuse recovery; retain the uncertain request for investigation.": (
        "api.test.js::a reset can refuse recovery",
    ),
    "A completed receipt confirms that operation, while current activation may have changed afterward.": (
        "api.test.js::a receipt confirms its operation while the activation has changed since",
    ),
    "Every record and directory entry includes runtime.state, runtime.generation, and an optional runtime.observed_at.": (
        "api.test.js::every record and directory entry has its runtime observations",
        "answers.test.js::a schedule that was never enabled has no activation and no observation",
    ),
}
"""What holds a sentence: tests by their file in `clients/typescript/test` and their name."""


@pytest.mark.parametrize("sentence", HELD)
def test_the_tests_that_hold_a_sentence_are_there(sentence):
    missing = [each for each in HELD[sentence] if each.partition("::")[2] not in names(each.partition("::")[0])]
    assert missing == []


def names(file: str) -> list[str]:
    return node.names_in(TESTS / file)
