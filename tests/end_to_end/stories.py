"""Tests that mostly wait, told at the same time on one installation, each with its own verdict."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.end_to_end.installation import Installation

Outcomes = dict[str, BaseException | None]
Story = Callable[[Installation], Awaitable[None]]
Test = Callable[[Outcomes], None]


class Stories:
    """Stories of one module. A story is declared with `@stories.story`, which makes a test of it::

    stories = Stories()

    @stories.story
    async def test_that_something_happens(it): ...

    @pytest.fixture(scope="module")
    def outcomes(tmp_path_factory, request):
        return stories.told(tmp_path_factory.mktemp("house"), request, installation)
    """

    def __init__(self) -> None:
        self._stories: dict[str, Story] = {}
        self._later: dict[str, Story] = {}

    def story(self, story: Story) -> Test:
        """Declare a story that is told with the others, at once."""
        self._stories[story.__name__] = story
        return _test_of(story)

    def later(self, story: Story) -> Test:
        """Declare a story that is told with others of its kind, once the first ones have ended."""
        self._later[story.__name__] = story
        return _test_of(story)

    def told(
        self, folder: Path, request, make: Callable[[Path], AbstractAsyncContextManager[Installation]]
    ) -> Outcomes:
        """Tell the stories that this session asks for, and return how each of them ended."""
        wanted = {item.name for item in request.session.items if item.path == request.path}
        acts = [{name: act[name] for name in act if name in wanted} for act in (self._stories, self._later)]
        return asyncio.run(_told(folder, acts, make))


async def _told(folder, acts, make) -> Outcomes:
    ends: Outcomes = {}
    try:
        async with make(folder) as it:
            for act in acts:
                told = await asyncio.gather(*(_timed(story, it) for story in act.values()), return_exceptions=True)
                ends |= {
                    name: end if isinstance(end, BaseException) else None for name, end in zip(act, told, strict=True)
                }
    except AssertionError:
        if not any(ends.values()):
            raise  # else what the stories have to say is more interesting
    return ends


async def _timed(story: Story, it: Installation) -> None:
    began = time.monotonic()
    try:
        await story(it)
    finally:
        print(f"{time.monotonic() - began:.0f} s: {story.__name__}")


def _test_of(story: Story) -> Test:
    def test(outcomes: Outcomes) -> None:
        if (failure := outcomes[story.__name__]) is not None:
            raise failure

    test.__name__ = test.__qualname__ = story.__name__
    test.__doc__ = story.__doc__
    test.__module__ = story.__module__
    return test
