"""A run that a person asked for starts at once, whoever took the request and died."""

from datetime import timedelta

from starter.temporal import Found
from tests.control.desk import Desk, every
from tests.controller.known import Clock, Known, controller


async def test_a_run_by_hand_is_started_at_the_next_look_and_told_to_temporal_once(catalog):
    desk, temporal, clock = Desk(catalog), Known(), Clock()
    desk.enabled(every(86_400))
    run = desk.hold_by_hand("asked")
    other = desk.hold_by_hand("asked-too")
    one = controller(catalog, temporal, clock)
    await one.by_hand.look()
    assert {each for each in temporal.found if "/manual/" in each} == {run.workflow_id, other.workflow_id}
    temporal.found.clear()
    await one.by_hand.look()
    assert temporal.found == {}


async def test_a_run_by_hand_that_could_not_be_started_is_tried_again(catalog):
    desk, clock = Desk(catalog), Clock()
    desk.enabled(every(86_400))
    run = desk.hold_by_hand("asked")

    class Deaf(Known):
        deaf = True

        async def start_run(self, key):
            if self.deaf:
                raise RuntimeError("deaf")
            await super().start_run(key)

    temporal = Deaf()
    one = controller(catalog, temporal, clock)
    await one.by_hand.look()
    assert temporal.found == {}
    temporal.deaf = False
    await one.by_hand.look()
    assert temporal.found == {run.workflow_id: Found.RUNNING}


async def test_what_the_calendar_staged_and_what_is_long_past_is_left_to_others(catalog):
    desk, temporal, clock = Desk(catalog), Known(), Clock()
    loop = desk.enabled(every(60))
    loop.step_at(57)
    desk.hold_by_hand("long-ago")
    clock.now += timedelta(minutes=3)
    await controller(catalog, temporal, clock).by_hand.look()
    assert temporal.found == {}
