"""What the conformance tests are run against: anything that answers as an authority does, asked without coroutines."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import yaml
from sqlalchemy import Connection

from horarium.authority import sql
from horarium.authority.declared import KINDS, stored
from horarium.authority.facts import Facts, Presence, Question, Surroundings
from horarium.authority.http import HttpAuthority
from horarium.authority.rules import MODE_OF, objections, reservation_of
from horarium.catalog import Catalog, money
from horarium.catalog.declarations import declare, record_act
from horarium.errors import NotFound
from horarium.schedule.configuration import RunRequest, UsageClass
from horarium.schedule.identity import Scope

SCOPE = Scope(org_id="conformance", environment_id="conformance")
FURNITURE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[3] / "deploy" / "authority.conformance.yaml").read_text(encoding="utf-8")
)
APPROVED = "sha256:" + "a" * 64
APPROVAL_EXPIRED = "sha256:" + "b" * 64
NEVER_APPROVED = "sha256:" + "c" * 64
MAX_COST = 100


def question(
    *,
    person: str = "ada",
    digest: str = APPROVED,
    agent: str = "triage@1",
    reads: str = "letters",
    writes: str = "reports",
    grants: Sequence[str] = ("mail",),
    budget: str | None = "plenty",
    usage: str = "test_compute",
) -> Question:
    """A question that nothing speaks against, but for what is named."""
    request = RunRequest(
        agent_version=agent,
        input=reads,
        output_target=writes,
        grants=tuple(grants),
        budget_id=budget,
        usage_class=UsageClass(usage),
    )
    return Question(scope=SCOPE, request=request, person=person, digest=digest)


@dataclass(frozen=True)
class Told:
    """An answer, and what speaks against the run by it, in the order of admission."""

    facts: Facts
    reserved: int | None
    codes: list[str]

    @property
    def room(self) -> int:
        assert self.facts.room is not None
        return self.facts.room


def told(asked: Question, facts: Facts, reserved: int | None) -> Told:
    around = Surroundings(
        mode=MODE_OF[asked.request.usage_class],
        runtime_profile="conformance",
        live_needs_approval=True,
        environment_epoch=1,
        environment_reset_generation=1,
        epoch=None,
        reset_generation=None,
        stop=None,
        presence=Presence(lifecycle="ready", lease_until=None),
    )
    against = objections(asked, facts, around, now=datetime.now(UTC))
    return Told(facts, reserved, [each.reason.value for each in against])


class Subject(Protocol):
    """An authority with the furniture in it."""

    is_remote: bool

    def ask(self, asked: Question, *, run_id: str | None = None) -> Told: ...

    def ask_at_once(self, asked: Question, run_ids: Sequence[str]) -> list[Told]: ...

    def read_input(self, reference: str, *, person: str) -> bytes: ...

    def close(self, run_id: str, *, spent: int | None) -> None: ...


def new_run() -> str:
    return str(uuid.uuid4())


@dataclass
class Remote:
    """A platform's service, through the adapter that admission uses."""

    authority: HttpAuthority
    runner: asyncio.Runner
    is_remote = True

    def ask(self, asked: Question, *, run_id: str | None = None) -> Told:
        return self.ask_at_once(asked, [run_id])[0]

    def ask_at_once(self, asked: Question, run_ids: Sequence[str | None]) -> list[Told]:
        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(self.authority.ask(asked, run_id=each) for each in run_ids))

        answers = self.runner.run(all_of_them())
        for each in answers:
            assert each.facts is not None, each.unanswered
        return [told(asked, each.facts, each.reserved) for each in answers]

    def read_input(self, reference: str, *, person: str) -> bytes:
        return self.runner.run(self.authority.read_input(SCOPE, reference, person=person))

    def close(self, run_id: str, *, spent: int | None) -> None:
        self.runner.run(self.authority.close_reservation(SCOPE, run_id, spent=spent))


@dataclass
class Local:
    """The authority that ships with the product: its declarations and its money, as the transaction of admission uses them."""

    catalog: Catalog
    is_remote = False

    def furnish(self) -> None:
        with self.catalog.writing() as connection:
            version = record_act(connection, SCOPE, "applied", actor="operator", now=datetime.now(UTC), details={})
            for kind, names in FURNITURE["declarations"].items():
                for name, facts in names.items():
                    # As a file's declarations are read, and as they are stored.
                    kept = stored(KINDS[kind].model_validate(facts))
                    declare(connection, SCOPE, kind, name, kept, version=version, everywhere=kind == "person")

    def ask(self, asked: Question, *, run_id: str | None = None) -> Told:
        with self.catalog.writing() as connection:
            return self._ask(connection, asked, run_id)

    def ask_at_once(self, asked: Question, run_ids: Sequence[str]) -> list[Told]:
        async def all_of_them() -> list[Told]:
            return await asyncio.gather(*(self.catalog.write(self._ask, asked, each) for each in run_ids))

        return asyncio.run(all_of_them())

    def _ask(self, connection: Connection, asked: Question, run_id: str | None) -> Told:
        facts = sql.gather(
            connection,
            asked,
            readable=asked.request.input in FURNITURE["contents"],
            writable=True,
            development=False,
            registered=None,
            lock=True,
        )
        held = None if run_id is None else money.find_reservation(connection, run_id)
        needed = reservation_of(asked, facts)
        budget = asked.request.budget_id
        if run_id is None or budget is None or facts.budget is None:
            return told(asked, facts, None)
        if held is None and facts.room is not None and facts.room >= needed:
            wallet = facts.budget.wallet
            now = datetime.now(UTC)
            money.reserve(connection, SCOPE, run_id, budget=budget, wallet=wallet, amount=needed, remote=False, now=now)
            return told(asked, facts, needed)
        if held is not None and held.state is money.ReservationState.HELD:
            assert facts.room is not None
            return told(asked, facts.model_copy(update={"room": facts.room + held.amount}), held.amount)
        return told(asked, facts, None)

    def read_input(self, reference: str, *, person: str) -> bytes:
        facts = self.ask(question(reads=reference, person=person)).facts
        if facts.input is None or not facts.input.readable:
            raise NotFound("input_unreadable", f"There is no input {reference!r} that {person!r} can read.")
        content: str = FURNITURE["contents"][reference]
        return content.encode()

    def close(self, run_id: str, *, spent: int | None) -> None:
        with self.catalog.writing() as connection:
            if spent is None:
                money.release(connection, run_id, now=datetime.now(UTC))
            else:
                money.settle(connection, run_id, spent=spent, now=datetime.now(UTC))
