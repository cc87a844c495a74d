"""What an administrator may set for a profile of the check. When it runs is not among it: the platform asks for that."""

from typing import Self

from pydantic import Field

from horarium.agents import AgentConfig, NumberInput


class IngestionConfig(AgentConfig):
    """The settings of the check."""

    listed: int = Field(default=200, ge=1, le=1_000)
    """Findings of one folder that are listed; the page says how many more there are."""

    @classmethod
    def as_form(cls) -> Self:
        """See `AgentConfig.as_form`."""
        return cls.form_of(
            listed=NumberInput(
                label="Findings listed", help="Of each folder; the report counts the rest.", minimum=1, maximum=1_000
            )
        )
