"""Whether declarations fit together: what one refers to has to stand, too. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from horarium.authority.declared import Agent, Binding, Budget, Declared, Wallet
from horarium.authority.file import PLURALS
from horarium.calendar.faults import Faults, pointer

Standing = Mapping[str, Mapping[str, Declared]]
"""Everything that will stand: every kind, each by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missing:
    """A reference that leads nowhere: from where in the declaration, and to what."""

    at: tuple[str, ...]
    kind: str
    name: str


def check_references(standing: Standing, *, named: Mapping[str, object], development: bool, faults: Faults) -> None:
    """Note a fault for each reference to what will not stand, and for budgets in another currency than their wallet's.

    `named` are the kinds that the file names. A fault about a declaration that the file leaves alone is told at the kind that
    the file would withdraw it from. In a `development` environment agents, inputs and outputs need not be declared.
    """
    for kind, each_kind in standing.items():
        for name, declared in each_kind.items():
            for missing in _missing(declared, standing, development=development):
                _tell(kind, name, missing, named, faults)
            if isinstance(declared, Budget):
                _check_currency(name, declared, standing, named, faults)


def _missing(declared: Declared, standing: Standing, *, development: bool) -> Iterator[_Missing]:
    for missing in _references(declared):
        lenient = development and missing.kind in {"agent", "input", "output"}
        if missing.name not in standing.get(missing.kind, {}) and not lenient:
            yield missing


def _references(declared: Declared) -> Iterator[_Missing]:
    match declared:
        case Budget(wallet=str() as wallet):
            yield _Missing(at=("wallet",), kind="wallet", name=wallet)
        case Agent(destination=str() as destination):
            yield _Missing(at=("destination",), kind="destination", name=destination)
        case Binding(run=run):
            yield _Missing(at=("run", "agent_version"), kind="agent", name=run.agent_version)
            yield _Missing(at=("run", "input"), kind="input", name=run.input)
            yield _Missing(at=("run", "output_target"), kind="output", name=run.output_target)
            for index, grant in enumerate(run.grants):
                yield _Missing(at=("run", "grants", str(index)), kind="grant", name=grant)
            if run.budget_id is not None:
                yield _Missing(at=("run", "budget_id"), kind="budget", name=run.budget_id)
        case _:
            pass


def _tell(kind: str, name: str, missing: _Missing, named: Mapping[str, object], faults: Faults) -> None:
    if kind in named:
        at = _at(PLURALS[kind], name, *missing.at)
        sentence = f"There is no {missing.kind} {missing.name!r}. Declare it, or name another."
    else:
        at = _at(PLURALS[missing.kind])
        sentence = (
            f"The {kind} {name!r}, which this file leaves alone, names the {missing.kind} {missing.name!r}, which would be "
            f"withdrawn. Keep it, or change the {kind}, too."
        )
    faults.add(at, f"{missing.kind}_missing", sentence)


def _check_currency(name: str, budget: Budget, standing: Standing, named: Mapping[str, object], faults: Faults) -> None:
    wallet = standing.get("wallet", {}).get(budget.wallet or "")
    if not isinstance(wallet, Wallet) or wallet.currency == budget.currency:
        return
    at = _at("budgets", name, "currency") if "budget" in named else _at("wallets", str(budget.wallet), "currency")
    sentence = (
        f"The budget {name!r} is in {budget.currency} and its wallet {budget.wallet!r} in {wallet.currency}. "
        "Nothing is exchanged, so they have one currency."
    )
    faults.add(at, "currency_mismatch", sentence)


def _at(*parts: str) -> str:
    return "".join(pointer("", part) for part in parts)
