"""The authority that ships with the product: what operators declared, read in the transaction that decides."""

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection

from horarium.authority.declared import Agent, Approval, Budget, Declared, Grant, Input, Output, Person, Wallet
from horarium.authority.facts import Facts, InputFacts, Question
from horarium.catalog import money
from horarium.catalog.declarations import Declaration, find_declarations
from horarium.catalog.presence import RegisteredAgent
from horarium.schedule.configuration import UsageClass

D = TypeVar("D", bound=Declared)


def gather(
    connection: Connection,
    question: Question,
    *,
    readable: bool,
    writable: bool,
    development: bool,
    registered: RegisteredAgent | None,
    lock: bool,
) -> Facts:
    """Everything that is declared about a question.

    `readable` and `writable` say whether the folder of contents has the input and the output target. In a `development`
    environment that is enough: who is not declared is a member, what is not declared is what the folder and the runner say.
    With `lock`, the budget's money stays as it is found until the transaction ends.
    """
    request = question.request
    wanted = {("agent", request.agent_version), ("input", request.input), ("output", request.output_target)}
    wanted |= {("grant", each) for each in request.grants}
    if question.person is not None:
        wanted.add(("person", question.person))
    if request.budget_id is not None:
        wanted.add(("budget", request.budget_id))
    if request.usage_class is UsageClass.LIVE:
        wanted.add(("approval", question.digest))
    found = _Found(find_declarations(connection, question.scope, wanted))
    person = None if question.person is None else found.get("person", question.person, Person)
    budget = None if request.budget_id is None else found.get("budget", request.budget_id, Budget)
    room, wallet, owed = None, None, 0
    if budget is not None and request.budget_id is not None:
        counted = money.account(connection, question.scope, money.BUDGET, request.budget_id, lock=lock)
        room = budget.limit - counted.spent - counted.reserved
    if budget is not None and budget.wallet is not None:
        found.add(find_declarations(connection, question.scope, {("wallet", budget.wallet)}))
        wallet = found.get("wallet", budget.wallet, Wallet)
        owed = money.account(connection, question.scope, money.WALLET, budget.wallet).spent
    return Facts(
        member=development if person is None else not person.left,
        agent=_agent(found, question, registered, development=development),
        input=_input(found, question, readable=readable, development=development),
        output=_output(found, question, writable=writable, development=development),
        grants={name: grant for name in request.grants if (grant := found.get("grant", name, Grant)) is not None},
        budget=budget,
        room=room,
        wallet=wallet,
        owed=owed,
        approval=found.get("approval", question.digest, Approval),
        versions=found.versions,
    )


class _Found:
    """Declarations that were read, as values, each read once."""

    def __init__(self, declarations: Mapping[tuple[str, str], Declaration]) -> None:
        self._declarations = dict(declarations)
        self.versions: dict[str, int | str] = {}
        self.add(declarations)

    def add(self, declarations: Mapping[tuple[str, str], Declaration]) -> None:
        self._declarations.update(declarations)
        self.versions |= {f"{kind}/{name}": each.version for (kind, name), each in declarations.items()}

    def get(self, kind: str, name: str, model: type[D]) -> D | None:
        each = self._declarations.get((kind, name))
        return None if each is None else model.model_validate(each.facts)


def _agent(found: _Found, question: Question, registered: RegisteredAgent | None, *, development: bool) -> Agent | None:
    declared = found.get("agent", question.request.agent_version, Agent)
    if declared is None and not development:
        return None
    if registered is None:
        return declared
    schedulable = bool(registered.discovery.get("is_schedulable", False))
    if declared is None:
        limit: Any = registered.discovery["max_run_seconds"]
        idempotent = bool(registered.discovery["idempotent"])
        return Agent(max_cost=0, max_run_seconds=int(limit), schedulable=schedulable, idempotent=idempotent)
    if declared.gateway == "temporal" and not schedulable:
        return declared.model_copy(update={"schedulable": False})
    return declared


def _input(found: _Found, question: Question, *, readable: bool, development: bool) -> InputFacts | None:
    declared = found.get("input", question.request.input, Input)
    if declared is None:
        return InputFacts(readable=readable) if development else None
    consent = declared.consent
    return InputFacts(
        readable=readable and question.person is not None and declared.is_readable_by(question.person),
        expires_at=declared.expires_at,
        consent_expires_at=None if consent is None else consent.expires_at,
        consent_withdrawn=consent is not None and consent.withdrawn,
    )


def _output(found: _Found, question: Question, *, writable: bool, development: bool) -> Output | None:
    declared = found.get("output", question.request.output_target, Output)
    if declared is None and not development:
        return None
    return (declared or Output()) if writable else None
