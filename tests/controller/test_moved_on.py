"""A reset whose command died right after its commit is finished by the controller."""

import pytest

from horarium.control import administration
from horarium.control.principals import OPERATOR_SCOPE
from starter import moved_on as module
from tests.control.caller import new_key, principal
from tests.control.desk import NOON, SCOPE, Desk, every
from tests.controller.known import Clock, Known, controller, runtime

CHANGE = {"because": "A drill.", "expected_environment_epoch": 1, "expected_reset_generation": 1}
OPERATOR = principal("olga", scopes=OPERATOR_SCOPE)


@pytest.fixture
def desks(catalog):
    made = [Desk(catalog) for _ in range(5)]
    for desk in made:
        desk.enabled(every(86_400))
    return made


@pytest.mark.parametrize("act", [administration.advance_epoch, administration.reset])
async def test_a_sweep_sends_everything_to_review_that_a_dead_command_left(catalog, desks, act, monkeypatch):
    monkeypatch.setattr(module, "REVIEWED_AT_ONCE", 2)
    one = controller(catalog, Known(), Clock())
    await one.sweep()
    assert {runtime(catalog, desk.key) for desk in desks} == {("active", None)}
    desks[0].write(act, OPERATOR, SCOPE, CHANGE, new_key(), now=NOON)
    await one.sweep()
    await one.tick()
    for desk in desks:
        state, reason = runtime(catalog, desk.key)
        assert state == "review"
        assert reason.endswith("it was enabled under 1, and the environment is at 2.")


async def test_one_that_cannot_be_ended_hides_no_other(catalog, desks, monkeypatch):
    desks[0].write(administration.reset, OPERATOR, SCOPE, CHANGE, new_key(), now=NOON)
    really = module.review_enabled_before

    def fail_at_one(connection, keys, *, now):
        if any(key.schedule == desks[2].key for key in keys):
            raise RuntimeError("A row that cannot be written.")
        return really(connection, keys, now=now)

    monkeypatch.setattr(module, "review_enabled_before", fail_at_one)
    await controller(catalog, Known(), Clock()).sweep()
    assert [desk.activation().is_live for desk in desks] == [False, False, True, False, False]
