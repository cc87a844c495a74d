"""From a claim to what a handler gets: the event that starts it, and the configuration of its profile.

Both come from outside and are judged by classes of the agent's author, so each fault becomes a sentence for the run's report.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from horarium.agents.agent import Agent
from horarium.agents.config import AgentConfig
from horarium.agents.events import CronStartEvent, StartEvent
from horarium.agents.host import Claim
from horarium.errors import Refused

_Model = TypeVar("_Model", bound=BaseModel)
_MAX_SHOWN = 10
"""Faults that a sentence names; a report is short."""


def start_event_of(agent: Agent, claim: Claim) -> StartEvent:
    """The event that starts a claimed run, of the class that the claim names; without one, an occurrence of its schedule.

    A field `run` of the class gets the run's brief, whatever the claim says of it. Raises `Refused`: `event_not_handled` for
    a class that the agent does not declare, `event_invalid` with every field that does not fit.
    """
    kind = _kind_of(agent, claim.start_event)
    fields = dict(claim.event)
    if "run" in kind.model_fields:
        fields["run"] = claim.brief.model_dump(mode="json")
    return _read(kind, fields, "event_invalid", "The start event does not fit")


def calendar_event_of(agent: Agent) -> type[StartEvent] | None:
    """The class of the event that starts an agent by the calendar, None where it is not schedulable.

    Whoever handles only an event of its own that derives from the calendar's is schedulable too, and is started by that.
    """
    own: list[type[StartEvent]] = [kind for kind in agent.handlers if issubclass(kind, CronStartEvent)]
    return CronStartEvent if CronStartEvent in own else next(iter(own), None)


def configuration_of(agent: Agent, settings: Mapping[str, Any]) -> AgentConfig:
    """The configuration of a run: the settings of its profile read by the agent's class, which fills in its own defaults.

    Raises `Refused`, code `config_invalid`, with every setting that does not fit.
    """
    config = _read(agent.config, settings, "config_invalid", "The configuration does not fit")
    if config.is_form:
        raise Refused("config_invalid", f"{agent.config.__name__} fills in form elements where a run needs values.")
    return config


def _kind_of(agent: Agent, name: str | None) -> type[StartEvent]:
    kinds = list(agent.handlers)
    found = calendar_event_of(agent) if name is None else next((kind for kind in kinds if kind.__name__ == name), None)
    if found is None:
        called, handled = name or CronStartEvent.__name__, ", ".join(kind.__name__ for kind in kinds)
        raise Refused(
            "event_not_handled", f"{agent.agent_version!r} does not handle {called[:100]!r}; it handles {handled}."
        )
    return found


def _read(kind: type[_Model], fields: Mapping[str, Any], code: str, sentence: str) -> _Model:
    try:
        # It came from JSON and is read as JSON: a strict class still takes an instant or a tuple.
        return kind.model_validate_json(json.dumps(dict(fields)))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        told = [
            f"{'.'.join(map(str, each['loc'])) or '(all of it)'}: {each['msg'].rstrip('.')}"
            for each in faults[:_MAX_SHOWN]
        ]
        more = [f"{len(faults) - _MAX_SHOWN} more"] if len(faults) > _MAX_SHOWN else []
        raise Refused(code, f"{sentence} {kind.__name__}: {'; '.join([*told, *more])}.") from error
    except Exception as error:  # a validator is its author's code and may raise anything
        raise Refused(code, f"{sentence} {kind.__name__}: it could not be read ({type(error).__name__}).") from error
