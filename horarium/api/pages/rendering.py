"""Templates, escaped without exception; an undefined name in one is an error, never an empty place."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from horarium.api.pages import moments, words
from horarium.calendar.clock_text import zone_shown


@cache
def templates() -> Environment:
    """The environment of all templates."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=words.finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        machine=moments.machine,
        wall=moments.wall,
        zone_shown=zone_shown,
        clock=moments.clock,
        ago=moments.ago,
        lateness=moments.lateness,
        disposition=words.disposition,
        state=words.state,
        reason=words.reason,
        short=words.short,
        review=words.review,
    )
    environment.tests.update(instant=moments.is_instant)
    environment.globals.update(took=moments.took)
    return environment


def render(name: str, values: dict[str, Any]) -> str:
    """A page as text."""
    return templates().get_template(name).render(values)
