"""A message that was not signed with the shared secret, a short time ago, is answered to nobody."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from horarium.authority.contract import QUESTIONS, QuestionAnswered, QuestionAsked, RequestTold, ScopeTold
from horarium.authority.signing import Keys, sign
from tests.authority.conformance.subjects import SCOPE, question


def body():
    asked = question()
    request = asked.request
    return (
        QuestionAsked(
            scope=ScopeTold(org_id=SCOPE.org_id, environment_id=SCOPE.environment_id),
            request=RequestTold(
                agent_version=request.agent_version,
                input=request.input,
                output_target=request.output_target,
                grants=request.grants,
                budget_id=request.budget_id,
                usage_class=request.usage_class.value,
            ),
            person=asked.person,
            digest=asked.digest,
            run_id=None,
            asked_at=datetime.now(UTC),
        )
        .model_dump_json()
        .encode()
    )


def post(address, headers, content):
    return httpx.post(address[0] + QUESTIONS, content=content, headers=headers, trust_env=False)


def signed(content, keys, *, away=timedelta(0)):
    return sign(content, keys, message_id="conformance", now=datetime.now(UTC) + away)


def test_a_signed_message_is_answered(address):
    content = body()
    answer = post(address, signed(content, address[1]), content)
    assert answer.status_code == 200
    QuestionAnswered.model_validate_json(answer.content, strict=True)


def test_a_message_is_answered_where_one_of_its_signatures_fits(address):
    content = body()
    headers = signed(content, address[1])
    headers["webhook-signature"] = f"v1,AAAA {headers['webhook-signature']}"
    assert post(address, headers, content).status_code == 200


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_message_of_another_time_is_not_answered(address, minutes):
    content = body()
    assert post(address, signed(content, address[1], away=timedelta(minutes=minutes)), content).status_code == 401


def test_a_message_that_was_changed_is_not_answered(address):
    content = body()
    changed = content.replace(b"letters", b"diary")
    assert changed != content
    assert post(address, signed(content, address[1]), changed).status_code == 401


def test_a_message_that_another_secret_signed_is_not_answered(address):
    content = body()
    assert post(address, signed(content, Keys((b"not the secret that is shared",))), content).status_code == 401


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_message_without_a_header_is_not_answered(address, missing):
    content = body()
    headers = signed(content, address[1])
    del headers[missing]
    assert post(address, headers, content).status_code == 401
