"""Cron profiles (seed 004): a profile of an agent class as its contract writes it, and what one with a cron compiles to.

Its configuration is data that belongs to its class, but for one member: `cron` belongs to the platform, and is null or six
texts, each of them stated. A schedule is never inferred, since what it starts runs unattended. The ids of a profile's schedule
and thread follow from its name: a profile that is made anew takes both up again, and two that save it at once make one of each.
"""

import copy
import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from horarium.calendar import Calendar, parse_cron
from horarium.calendar.cron import POSITION_NAMES
from horarium.calendar.faults import Faults, pointer, shown
from horarium.errors import InvalidSchedule
from horarium.schedule.canonical import canonical_json
from horarium.schedule.document import json_faults
from horarium.schedule.identity import Scope
from horarium.schedule.policy import Overlap
from horarium.schedule.submission import schema_faults, submission_faults
from horarium.schedule.timing import TIMING

CONTRACT: Final = "cron_profiles"
"""How a schedule's row and a stored document name this contract."""
CRON_START_EVENT: Final = "CronStartEvent"
"""The class of the event that starts a run by the calendar."""
CATCHUP_WINDOW: Final = timedelta(minutes=15)
"""How late an occurrence may start (seed 004, decision 6)."""
MAX_CONFIG_BYTES: Final = 64 * 1024
"""The largest configuration of a profile, in bytes of canonical JSON: each of its runs is handed it."""
MAX_EVENT_BYTES: Final = 64 * 1024
"""The largest start event that a person sends, in bytes of canonical JSON."""
MAX_TENANT: Final = 200
"""Characters in the name of a tenant."""
AGENT_ID: Final = re.compile(r"[A-Za-z0-9._@:-]{1,200}")
"""What a profile may be called in its class: it stands in the name of its binding."""
CRON_MEMBERS: Final = (*POSITION_NAMES, "timezone")

_SCHEDULES = uuid.UUID("c2b5a4d8-0f6e-5b1a-8a7d-3c9e51f7d240")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is saved of a profile, as values.

    `config` is its configuration as it came. `cron` are the six texts of its schedule, and `calendar` the same ready to
    evaluate; both None where it has none.
    """

    config: Mapping[str, Any] = field(repr=False)
    cron: Mapping[str, str] | None
    calendar: Calendar | None
    tenant_id: str | None


def parse_profile(document: object, schema: Mapping[str, Any] | None = None) -> Profile:
    """Check what is saved of a profile, and return it as values. `schema` is what the class reports of its other settings.

    Raises `InvalidSchedule` with all faults at once, each with a JSON pointer: a bad position at itself
    (`/config/cron/minute`), a position that is missing, and whatever else stands where the six texts are expected: the form
    that a schedule is filled in with, or a cron as one text, is no schedule.
    """
    if found := json_faults(document):
        raise InvalidSchedule(found)
    faults = Faults()
    if not isinstance(document, dict):
        faults.add("", "not_an_object", f"This is an object with config and tenant_id; found {shown(document)}.")
        faults.raise_if_any()
    assert isinstance(document, dict), "a fault was noted"
    faults.check_members(document, "", ("config", "tenant_id"))
    config = _config(document, faults)
    found_cron = None if config is None else _cron(config.get("cron"), faults)
    if config is not None and schema:
        for fault in submission_faults(config, schema, at="/config"):
            faults.add(fault.pointer, fault.code, fault.sentence)
    tenant_id = _tenant(document.get("tenant_id"), faults)
    faults.raise_if_any()
    assert config is not None, "without a fault there is a configuration"
    cron, calendar = found_cron or (None, None)
    return Profile(config=copy.deepcopy(config), cron=cron, calendar=calendar, tenant_id=tenant_id)


def parse_event(document: object, start_event: str, schema: object = None) -> dict[str, Any]:
    """Check what a person sends to start a run by an event, `{"event": {…}}`, and return the event's own fields.

    `run` is told by whoever dispatches, and the event of the calendar has nothing beside it. `schema` is what the class reports
    of the fields; where it reports none, the run alone judges them. Raises `InvalidSchedule` with all faults at once.
    """
    if found := json_faults(document):
        raise InvalidSchedule(found)
    faults = Faults()
    if not isinstance(document, dict):
        faults.add("", "not_an_object", f'This is an object such as {{"event": {{}}}}; found {shown(document)}.')
        faults.raise_if_any()
    assert isinstance(document, dict), "a fault was noted"
    faults.check_members(document, "", ("event",))
    event = document.get("event", {})
    if not isinstance(event, dict):
        faults.add("/event", "not_an_object", f"This is an object with the event's own fields; found {shown(event)}.")
    elif start_event == CRON_START_EVENT and event:
        sentence = f"{CRON_START_EVENT} has no field but run, which is told by whoever dispatches. Send {{}}."
        faults.add("/event", "no_fields", sentence)
    else:
        _check_size(event, "/event", MAX_EVENT_BYTES, faults)
        if "run" in event:
            sentence = "Whoever dispatches tells the event which run it is. Leave run out."
            faults.add("/event/run", "run_is_told", sentence)
        own = {name: value for name, value in event.items() if name != "run"}
        for fault in schema_faults(own, schema, at="/event"):
            faults.add(fault.pointer, fault.code, fault.sentence)
    faults.raise_if_any()
    assert isinstance(event, dict), "a fault was noted"
    return copy.deepcopy(event)


def stored_document(profile: Profile, run: Mapping[str, Any], *, agent_class: str, agent_id: str) -> dict[str, Any]:
    """What a version stores of a profile that has a cron, with the run request of its binding.

    Runs never wait for each other, one that fails pauses nothing, and what is later than `CATCHUP_WINDOW` is missed. The same
    profile and binding give the same document, so its digest tells whether anything changed.
    """
    assert profile.cron is not None, "a profile without a cron has no schedule"
    return {
        "name": f"{agent_class}/{agent_id}"[:200],
        "contract": CONTRACT,
        TIMING: {"cron": dict(profile.cron)},
        "policy": {
            "overlap": Overlap.ALLOW.value,
            "catchup_window_seconds": int(CATCHUP_WINDOW.total_seconds()),
            "pause_on_failure": False,
        },
        "run": copy.deepcopy(dict(run)),
        "source": {
            "agent_class": agent_class,
            "agent_id": agent_id,
            "tenant_id": profile.tenant_id,
            "config": copy.deepcopy(dict(profile.config)),
        },
    }


def can_name(agent_class: str, agent_id: str) -> bool:
    """Whether two texts can be a class and a profile of it at all. What cannot is stored nowhere, and not looked for."""
    return agent_class.isidentifier() and is_agent_id(agent_id)


def is_agent_id(text: str) -> bool:
    """Whether a profile may be called so: `AGENT_ID`, and no step in a path, since its address could not be written."""
    return AGENT_ID.fullmatch(text) is not None and text not in {".", ".."}


def thread_id(agent_class: str, agent_id: str) -> str:
    """The id of the thread that all runs of a profile share: unique in its environment, and the same for whoever asks."""
    return hashlib.sha256(f"{agent_class}/{agent_id}".encode()).hexdigest()


def profile_schedule_id(scope: Scope, agent_class: str, agent_id: str) -> str:
    """The id of the schedule behind a profile, a UUID that follows from its name."""
    return str(uuid.uuid5(_SCHEDULES, f"{scope.org_id}/{scope.environment_id}/{agent_class}/{agent_id}"))


def binding_name(agent_class: str, agent_id: str) -> str:
    """The name of the binding that supplies the run request (DESIGN.md, section 8)."""
    return f"cron:{agent_class}/{agent_id}"


def _config(document: dict[str, Any], faults: Faults) -> dict[str, Any] | None:
    if "config" not in document:
        faults.add("/config", "missing_field", "The field config is required; {} is a configuration without a setting.")
        return None
    config = document["config"]
    if not isinstance(config, dict):
        faults.add("/config", "not_an_object", f"This is an object with the profile's settings; found {shown(config)}.")
        return None
    _check_size(config, "/config", MAX_CONFIG_BYTES, faults)
    return config


def _cron(cron: object, faults: Faults) -> tuple[dict[str, str], Calendar] | None:
    at = "/config/cron"
    if cron is None:
        return None
    if not isinstance(cron, dict):
        sentence = f"This is null, or an object with the texts {', '.join(CRON_MEMBERS)}; found {shown(cron)}."
        faults.add(at, "not_a_cron", sentence)
        return None
    before = len(faults)
    faults.check_members(cron, at, CRON_MEMBERS)
    if "timezone" not in cron:
        faults.add(pointer(at, "timezone"), "missing_field", "'timezone' is required: an exact IANA name.")
    positions = {name: cron[name] for name in POSITION_NAMES if name in cron}
    try:
        calendar = parse_cron(positions, cron.get("timezone", "UTC"), at=at)
    except InvalidSchedule as refused:
        faults.extend(refused)
        return None
    return None if len(faults) > before else ({name: cron[name] for name in CRON_MEMBERS}, calendar)


def _tenant(value: object, faults: Faults) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TENANT or not value.isprintable() or value.isspace():
        sentence = f"A tenant is null, or one line of 1 to {MAX_TENANT} printable characters; found {shown(value)}."
        faults.add("/tenant_id", "not_a_tenant", sentence)
        return None
    return value


def _check_size(value: Mapping[str, Any], at: str, most: int, faults: Faults) -> None:
    size = len(canonical_json(value))
    if size > most:
        faults.add(at, "too_large", f"This has {size:,} bytes of JSON; at most {most:,} are stored.")
