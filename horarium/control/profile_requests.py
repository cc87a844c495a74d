"""What is asked of a request about a profile before anything is done: its name, its document, and that the profile is there."""

from sqlalchemy import Connection

from horarium.catalog.profiles import StoredProfile, find_profile
from horarium.control.profile_records import profile_not_found
from horarium.errors import InvalidSchedule, Refused
from horarium.schedule.document import json_faults
from horarium.schedule.identity import Scope
from horarium.schedule.profiles import can_name, is_agent_id


def require_profile(connection: Connection, scope: Scope, agent_class: str, agent_id: str) -> StoredProfile:
    """A profile that is there; `NotFound` with `profile_not_found` where it is not, or was deleted."""
    profile = find_profile(connection, scope, agent_class, agent_id)
    if profile is None or profile.is_deleted:
        raise profile_not_found(scope, agent_class, agent_id)
    return profile


def require_json(document: object) -> None:
    """Raise `InvalidSchedule` for what is no JSON, with its places in the document itself: the key is bound to a digest."""
    if faults := json_faults(document):
        raise InvalidSchedule(faults)


def require_name(scope: Scope, agent_class: str, agent_id: str) -> None:
    """Of what cannot be a profile's name there is no profile. Asked before anything else, since it may not even be text."""
    if not can_name(agent_class, agent_id):
        raise profile_not_found(scope, agent_class, agent_id)


def require_id(agent_id: str) -> None:
    """Raise `Refused` with `invalid_agent_id` for what no new profile may be called."""
    if not is_agent_id(agent_id):
        raise Refused(
            "invalid_agent_id",
            f"{agent_id[:80]!r} is no id of a profile: 1 to 200 letters, digits or any of . _ @ : -",
            next_step="Choose another id; it is the profile's name for good.",
        )
