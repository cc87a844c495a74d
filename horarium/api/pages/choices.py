"""What the forms of a page ask for: a choice that was left empty asks for everything."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from horarium.catalog.directory import Standing
from horarium.schedule.ledger import Disposition


def _chosen(value: Any) -> Any:
    """A field of a form that nobody filled stands in the address as an empty text."""
    if isinstance(value, list):
        return [each for each in value if each != ""]
    return None if value == "" else value


ChosenStanding = Annotated[Standing | None, BeforeValidator(_chosen)]
ChosenDispositions = Annotated[list[Disposition], BeforeValidator(_chosen)]
