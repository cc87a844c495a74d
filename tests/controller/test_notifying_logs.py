"""What is logged of messages that nobody hears: a line when it begins and one when it ends, since a flood is thousands of them."""

from datetime import timedelta

from structlog.testing import capture_logs

from horarium.catalog import Catalog
from horarium.schedule.notifications import GIVE_UP_AFTER
from tests.controller.test_notifying import BROKEN, Scene
from tests.gateway.wire import receiver, says


async def test_a_message_that_is_not_heard_is_logged_at_first_and_when_it_is_given_up(catalog: Catalog) -> None:
    async with receiver(says(BROKEN)) as there:
        scene = Scene(catalog)
        scene.listen(there.url())
        scene.fail()
        notifier = scene.notifier()
        with capture_logs() as logs:
            await scene.turn(notifier)
            for pause in (1, 2, 4):
                await scene.turn(notifier, after=timedelta(seconds=pause))
            await scene.turn(notifier, after=GIVE_UP_AFTER)
        assert len(there.requests) == 5
        told = [(each["event"], each["attempts"]) for each in logs if each["event"].startswith("notification_")]
        assert told == [("notification_not_heard", 1), ("notification_dead", 5)]
        assert {each["because"] for each in logs if "because" in each} == {"It answered with status 500."}
