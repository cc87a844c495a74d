"""Money: reserved once for each run, given back or spent at its end, and never more than there is."""

import pytest

from tests.authority.conformance.subjects import MAX_COST, new_run, question


@pytest.fixture
def run(subject):
    """A run whose reservation is given back, whatever becomes of the test."""
    run_id = new_run()
    yield run_id
    subject.close(run_id, spent=None)


def room(subject, **change):
    return subject.ask(question(**change)).room


def test_a_question_alone_reserves_nothing(subject):
    before = room(subject)
    assert subject.ask(question()).reserved is None
    assert room(subject) == before


def test_a_run_reserves_what_it_may_cost(subject, run):
    before = room(subject)
    answer = subject.ask(question(), run_id=run)
    assert (answer.codes, answer.reserved) == ([], MAX_COST)
    assert room(subject) == before - MAX_COST


def test_a_run_that_is_asked_about_again_has_the_same_answer_and_reserves_once(subject, run):
    """The first answer may have been lost: the second must not find that the run has taken its own room."""
    before = room(subject)
    first, second = (subject.ask(question(), run_id=run) for _ in range(2))
    assert (first.room, first.reserved) == (second.room, second.reserved) == (before, MAX_COST)
    assert room(subject) == before - MAX_COST


def test_the_same_run_asked_about_many_times_at_once_reserves_once(subject, run):
    before = room(subject)
    answers = subject.ask_at_once(question(), [run] * 10)
    assert {each.reserved for each in answers} == {MAX_COST}
    assert room(subject) == before - MAX_COST


def test_what_is_given_back_is_there_again_however_often_it_is_told(subject):
    run, before = new_run(), room(subject)
    subject.ask(question(), run_id=run)
    for _ in range(3):
        subject.close(run, spent=None)
    assert room(subject) == before


@pytest.mark.parametrize("spent", [0, 1, MAX_COST, MAX_COST + 50])
def test_a_run_costs_what_it_cost_and_not_what_was_reserved(subject, spent):
    run, before = new_run(), room(subject)
    subject.ask(question(), run_id=run)
    for _ in range(2):
        subject.close(run, spent=spent)
    assert room(subject) == before - spent


@pytest.mark.parametrize("spent", [None, 1])
def test_nothing_is_reserved_for_a_run_that_was_closed(subject, spent):
    run, before = new_run(), room(subject)
    subject.ask(question(), run_id=run)
    subject.close(run, spent=spent)
    assert subject.ask(question(), run_id=run).reserved is None
    assert room(subject) == before - (spent or 0)


def test_nothing_is_reserved_for_a_run_that_was_closed_before_it_was_heard_of(subject):
    """Its question may have been on its way for longer than it took us to give up."""
    if not subject.is_remote:
        pytest.skip("nothing is under way to the catalog's own authority: it decides in the transaction that asks")
    run, before = new_run(), room(subject)
    subject.close(run, spent=None)
    assert subject.ask(question(), run_id=run).reserved is None
    assert room(subject) == before


def test_of_many_at_once_only_those_reserve_that_there_is_room_for(subject):
    asked = question(budget="room-for-three")
    runs = [new_run() for _ in range(20)]
    try:
        answers = subject.ask_at_once(asked, runs)
        assert [each.reserved for each in answers].count(MAX_COST) == 3
        assert [each.reserved for each in answers].count(None) == 17
        assert subject.ask(asked).codes == ["budget_exhausted"]
    finally:
        for run in runs:
            subject.close(run, spent=None)
    assert subject.ask(asked).codes == []


def test_what_a_wallet_owes_grows_by_what_was_spent(subject):
    run, asked = new_run(), question(budget="by-wallet")
    before = subject.ask(asked).facts.owed
    subject.ask(asked, run_id=run)
    subject.close(run, spent=7)
    assert subject.ask(asked).facts.owed == before + 7
