"""What a profile of an agent can set: the base of all configurations, and the form and submission derived from it."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, create_model

from horarium.agents.cron import CronInput, CronSchedule
from horarium.agents.forms import DataOnly, FormElement, data_type
from horarium.errors import Misconfigured


class AgentConfig(BaseModel):
    """The settings of one profile of an agent. Derive from it for settings of your own, and say which are configurable::

        class TriageConfig(AgentConfig):
            mailbox: str
            most: int = Field(default=100, ge=1, le=1000)

            @classmethod
            def as_form(cls) -> Self:
                return cls.form_of(mailbox=TextInput(label="Mailbox"), most=NumberInput(label="Letters a run"))

    A configuration holds data, and that is what a run is given. In form mode it holds form elements instead: a field is
    configurable only while its value is one. The schedule, `cron`, is the platform's own. Raises `Misconfigured`, while a
    class is being defined, where it declares `cron` again, gives a setting a second name, or a form element as its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cron: Annotated[CronSchedule | CronInput | None, DataOnly()] = Field(
        default=None, description="When runs start without a person; null for never"
    )
    """When runs start without a person; None for never. The platform shows and reads it: leave it out of `as_form`."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if isinstance(field.default, FormElement):
                raise Misconfigured(
                    f"{cls.__name__}.{name} has a form element as its default, which runs would work with. "
                    "Put the element into `as_form`, and a value here."
                )
            if field.alias is not None or field.validation_alias is not None:
                raise Misconfigured(
                    f"{cls.__name__}.{name} has an alias. A setting has one name, in its form and in what is stored."
                )
        ours = AgentConfig.model_fields["cron"]
        found = cls.model_fields.get("cron", ours)
        if found.annotation != ours.annotation or found.default is not None or found.default_factory is not None:
            raise Misconfigured(
                f"{cls.__name__} declares `cron` again. The platform owns this field; remove it, or give yours another name."
            )

    @classmethod
    def as_form(cls) -> Self:
        """The configuration in form mode, without a schedule. Replace it where there are settings; nothing is shown else."""
        return cls.form_of()

    @classmethod
    def form_of(cls, **elements: FormElement) -> Self:
        """A configuration in form mode: each named field holds its form element, and the others what they hold by default.

        Raises `Misconfigured` for a field that is not declared, for a value that is no form element, and for a schedule
        under another name than `cron`, since nothing would ever start by it.
        """
        for name, element in elements.items():
            if name not in cls.model_fields:
                raise Misconfigured(
                    f"{cls.__name__} has no field {name!r}; it has {', '.join(map(repr, cls.model_fields))}."
                )
            given: object = element  # what a person wrote need not have the type that was asked for
            if not isinstance(given, FormElement):
                raise Misconfigured(f"{cls.__name__}.{name} is to show {given!r}, which is no form element.")
            if isinstance(given, CronInput) and name != "cron":
                raise Misconfigured(
                    f"{cls.__name__}.{name} asks for a schedule, and only `cron` starts runs. Remove it: "
                    "the platform shows the schedule of every agent that handles CronStartEvent."
                )
        # As the base declares it: the types of our own fields are those of data.
        return super().model_construct(None, **elements)

    @property
    def is_form(self) -> bool:
        """Whether any field holds a form element, so that no run can work with it."""
        return any(True for _ in self._configurable())

    def published_form(self) -> tuple[dict[str, Any], ...]:
        """What a user interface shows: an element for each configurable field, as declared, and the schedule last.

        Each has its `name`, whether it is `required`, its `default`, and what its element publishes. Plain data.
        """
        schema = self.submission_model().model_json_schema()
        return tuple(
            {
                "name": name,
                **element.published(),
                "required": name in schema.get("required", ()),
                "default": schema["properties"][name].get("default"),
            }
            for name, element in self._configurable()
        )

    def submission_model(self) -> type[BaseModel]:
        """What may be submitted: exactly the configurable fields, with their data types and bounds, and the schedule last.

        Validators of the class are not part of it; they judge when a run reads its configuration.
        """
        declared = type(self).model_fields
        fields: dict[str, Any] = {
            name: (data_type(declared[name].annotation), declared[name]) for name, _ in self._configurable()
        }
        return create_model(f"{type(self).__name__}Submission", __config__=ConfigDict(extra="forbid"), **fields)

    def _configurable(self) -> Iterator[tuple[str, FormElement]]:
        # Pydantic puts the fields of a base first, and the schedule would stand before the first setting of the agent.
        for name in (*(each for each in type(self).model_fields if each != "cron"), "cron"):
            value = self.__dict__.get(name)
            if isinstance(value, FormElement):
                yield name, value


def published_view(handed: AgentConfig, *, schedulable: bool) -> AgentConfig:
    """The configuration as it is published, beside the one that was handed over, which stays as it is.

    A schedule is shown for agents that are schedulable and for no others, whatever the configuration says of itself.
    """
    return handed.model_copy(update={"cron": CronInput() if schedulable else None})
