"""The schedule of a profile: five cron positions and a time zone as data, and the form element that asks for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from horarium.agents.forms import FormElement
from horarium.calendar import parse_cron
from horarium.calendar.cron import POSITION_NAMES
from horarium.errors import InvalidSchedule

_ANY: Final = dict.fromkeys(POSITION_NAMES, "*")


def _refused(error: InvalidSchedule) -> PydanticCustomError:
    return PydanticCustomError(error.faults[0].code, " ".join(fault.sentence for fault in error.faults))


def _position(name: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            parse_cron(_ANY | {name: text}, "UTC")
        except InvalidSchedule as error:
            raise _refused(error) from error
        return text

    return check


def _check_timezone(timezone: str) -> str:
    try:
        parse_cron(_ANY, timezone)
    except InvalidSchedule as error:
        raise _refused(error) from error
    return timezone


class CronSchedule(BaseModel):
    """When the runs of a profile are due: five cron positions, and the IANA time zone whose clock they are read by.

    All six are required texts. Were one filled in for whoever left it out, whatever is no schedule would still start runs
    unattended (cron profiles, decision 2). A position is refused at itself, with the sentence of the calendar.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    minute: Annotated[str, AfterValidator(_position("minute")), Field(description="0 to 59")]
    hour: Annotated[str, AfterValidator(_position("hour")), Field(description="0 to 23")]
    day_of_month: Annotated[str, AfterValidator(_position("day_of_month")), Field(description="1 to 31")]
    month: Annotated[str, AfterValidator(_position("month")), Field(description="1 to 12, or jan to dec")]
    day_of_week: Annotated[
        str, AfterValidator(_position("day_of_week")), Field(description="0 to 7, or sun to sat; 0 and 7 are Sunday")
    ]
    timezone: Annotated[
        str, AfterValidator(_check_timezone), Field(description="An IANA time zone, such as Europe/Zurich")
    ]

    @model_validator(mode="after")
    def _together(self) -> Self:
        # Positions that are right by themselves may be too long together, or name no date at all.
        try:
            parse_cron(self.model_dump(exclude={"timezone"}), self.timezone)
        except InvalidSchedule as error:
            raise _refused(error) from error
        return self


def presets_in(timezone: str) -> Mapping[str, CronSchedule]:
    """Schedules that people ask for often, by what they are called, on the clock of a time zone."""

    def preset(minute: str, hour: str, day_of_month: str, day_of_week: str) -> CronSchedule:
        return CronSchedule(
            minute=minute, hour=hour, day_of_month=day_of_month, month="*", day_of_week=day_of_week, timezone=timezone
        )

    return MappingProxyType(
        {
            "Every hour": preset("0", "*", "*", "*"),
            "Every day at 06:00": preset("0", "6", "*", "*"),
            "Every weekday at 07:30": preset("30", "7", "*", "1-5"),
            "Every Monday at 08:00": preset("0", "8", "*", "1"),
            "On the first of the month at 06:00": preset("0", "6", "1", "*"),
        }
    )


@dataclass(frozen=True, kw_only=True)
class CronInput(FormElement):
    """The form element that asks for a `CronSchedule`: one control for each position, presets, and a time zone.

    It stands in the place of the schedule while a form is published, and is never itself a schedule. `presets` are by what
    they are called.
    """

    element: ClassVar[str] = "cron"

    label: str = "Schedule"
    help: str = (
        "When runs start without a person, by the clock of the time zone. Leave it empty for none. "
        "A preset is in UTC until you choose another time zone."
    )
    presets: Mapping[str, CronSchedule] = field(default_factory=lambda: presets_in("UTC"))

    def published(self) -> dict[str, Any]:
        """See `FormElement.published`; `positions` have their bounds and the names that may be written for numbers."""
        presets = [{"name": name, "value": schedule.model_dump()} for name, schedule in self.presets.items()]
        return super().published() | {"positions": [dict(each) for each in _CONTROLS], "presets": presets}


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def _control(name: str, label: str, low: int, high: int, names: tuple[str, ...] = ()) -> Mapping[str, Any]:
    return {"name": name, "label": label, "minimum": low, "maximum": high, "names": list(names)}


_CONTROLS: Final[tuple[Mapping[str, Any], ...]] = (
    _control("minute", "Minute", 0, 59),
    _control("hour", "Hour", 0, 23),
    _control("day_of_month", "Day of month", 1, 31),
    _control("month", "Month", 1, 12, _MONTHS),
    # 7 is Sunday too.
    _control("day_of_week", "Day of week", 0, 7, _WEEKDAYS),
    {"name": "timezone", "label": "Time zone"},
)
