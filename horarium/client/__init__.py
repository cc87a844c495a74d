"""The Python client of the HTTP API: `horarium.Client`, what its calls answer, and every way in which they fail.

::

    async with horarium.Client("https://horarium.example", token=fetch_token) as client:
        environment = await client.environments.get(scope)
        receipt = await client.schedules.publish(scope, request, key)
        record = await client.schedules.get_version(scope, receipt.resource_id)
"""

from horarium.client import codes, problems
from horarium.client.answers import (
    Act,
    Activation,
    Acts,
    Applied,
    AuthorityOverview,
    Entry,
    Environment,
    Event,
    Events,
    LastOutcome,
    Occurrence,
    Occurrences,
    Page,
    Preview,
    Receipt,
    Record,
    Reference,
    Runtime,
    Translation,
)
from horarium.client.authority import Authority
from horarium.client.calls import ANSWER_WITHIN, Token
from horarium.client.client import Client, Environments, Receipts
from horarium.client.problems import ClientError, OutcomeUnknown, Problem, UnexpectedAnswer, Unreachable
from horarium.client.profiles import (
    AgentClass,
    AgentClasses,
    AgentVersion,
    Profile,
    ProfilePage,
    ProfileReceipt,
    Profiles,
    Thread,
    ThreadEvent,
)
from horarium.client.schedules import Schedules
from horarium.client.v0 import V0, V0Page, V0Schedule

__all__ = [
    "ANSWER_WITHIN",
    "V0",
    "Act",
    "Activation",
    "Acts",
    "AgentClass",
    "AgentClasses",
    "AgentVersion",
    "Applied",
    "Authority",
    "AuthorityOverview",
    "Client",
    "ClientError",
    "Entry",
    "Environment",
    "Environments",
    "Event",
    "Events",
    "LastOutcome",
    "Occurrence",
    "Occurrences",
    "OutcomeUnknown",
    "Page",
    "Preview",
    "Problem",
    "Profile",
    "ProfilePage",
    "ProfileReceipt",
    "Profiles",
    "Receipt",
    "Receipts",
    "Record",
    "Reference",
    "Runtime",
    "Schedules",
    "Thread",
    "ThreadEvent",
    "Token",
    "Translation",
    "UnexpectedAnswer",
    "Unreachable",
    "V0Page",
    "V0Schedule",
    "codes",
    "problems",
]
