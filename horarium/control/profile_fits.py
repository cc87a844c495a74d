"""Whether what is stored of profiles fits what their agent versions report: another release may want other settings.

The version that a profile's runs go to is the one that was saved with it. Its binding may name another one by now, by which the
next save is judged. A page is looked at within bounds: what is left then is the agent's to check.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from horarium.catalog.presence import RegisteredAgent
from horarium.catalog.profiles import StoredProfile
from horarium.catalog.standings import Standing
from horarium.control.bindings import bound_versions
from horarium.control.registrations import registrations
from horarium.errors import Fault, InvalidSchedule
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import binding_name
from horarium.schedule.submission import MAX_LOOKS, submission_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A profile, the version that its runs go to, None where it does not fire, and the one that its binding names."""

    profile: StoredProfile
    running: str | None
    bound: str | None


def misfits(
    connection: Connection, scope: Scope, page: Sequence[tuple[StoredProfile, Standing | None]]
) -> dict[int, str]:
    """What speaks against the stored settings of these profiles, as a sentence by their rows; nothing of those that fit."""
    names = {each.row: binding_name(each.agent_class, each.agent_id) for each, _ in page}
    bound = bound_versions(connection, scope, names.values())
    judged = [
        _Judged(profile=each, running=_running(standing), bound=bound.get(names[each.row])) for each, standing in page
    ]
    wanted = {version for each in judged for version in (each.running, each.bound) if version is not None}
    reported = registrations(connection, scope, wanted)
    looks = itertools.repeat(True, MAX_LOOKS)
    told = ((each.profile.row, _misfit(each, reported, looks)) for each in judged)
    return {row: sentence for row, sentence in told if sentence is not None}


def _running(standing: Standing | None) -> str | None:
    if (
        standing is None
        or standing.activated is None
        or standing.state[0] != "enabled"
        or standing.activated.is_damaged
    ):
        return None
    return standing.activated.configuration.run.agent_version


def _misfit(judged: _Judged, reported: Mapping[str, RegisteredAgent], looks: Iterator[bool]) -> str | None:
    for version, consequence in (
        (judged.running, "which its runs are handed to, so that they fail"),
        (judged.bound, "which its binding names, so that it cannot be saved as it is"),
    ):
        found = None if version is None else reported.get(version)
        against = _against(judged.profile, found, looks)
        if against:
            more = f" There are {len(against)} faults." if len(against) > 1 else ""
            remedy = "Save the profile with settings that fit."
            return f"The stored config does not fit {version}, {consequence}: {against[0]}{more} {remedy}"
    return None


def _against(profile: StoredProfile, registered: RegisteredAgent | None, looks: Iterator[bool]) -> Sequence[Fault]:
    """What a version's schema has against the settings of a profile; nothing where either cannot be read: others tell that."""
    if registered is None or registered.agent_class != profile.agent_class:
        return ()
    try:
        config = profile.config
    except InvalidSchedule:
        return ()
    return submission_faults(config, registered.discovery.get("submission_schema", {}), at="/config", looks=looks)
