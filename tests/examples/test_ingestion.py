"""The example agent does a job worth doing: on real files, with a real report."""

import asyncio
import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from examples.ingestion import agents, checks
from examples.ingestion.agent import IngestionCheck
from examples.ingestion.checks import Check, FolderResult, Kind, Stopped
from examples.ingestion.config import IngestionConfig
from examples.ingestion.manifest import UnusableManifest, parse_manifest
from examples.ingestion.report import file_name, markdown, summary
from examples.ingestion.sample import AGED, MANIFEST, prepare
from horarium.agents import (
    AgentReport,
    AgentRunner,
    AgentTestRunner,
    CronStartEvent,
    InMemoryHost,
    RunBrief,
    RunContext,
    ScheduleReference,
)

AT = datetime(2026, 11, 30, 6, 30, 0, 250_000, tzinfo=UTC)


def brief(at: datetime = AT) -> RunBrief:
    return RunBrief(
        run_id="run-1",
        schedule=ScheduleReference(
            org_id="acme", environment_id="test", schedule_id="8c5d", revision=2, digest="sha256:0"
        ),
        trigger="schedule",
        nominal_time=at.replace(microsecond=0),
        actual_time=at,
        agent_version="ingestion-check@1",
        input="ingestion/manifest",
        output_target="ingestion-reports",
    )


def check(
    root: Path, *folders: dict[str, Any], at: datetime = AT, breathe=lambda _words: None
) -> tuple[FolderResult, ...]:
    manifest = parse_manifest(json.dumps({"folders": list(folders)}).encode())
    return Check(manifest=manifest, root=root, at=at, breathe=breathe).run()


def deliver(root: Path, name: str, content: str | bytes, *, age: timedelta = timedelta(0)) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    written = (AT - age).timestamp()
    os.utime(path, (written, written))
    return path


def found(result: FolderResult) -> list[tuple[str, Kind, str]]:
    return [(finding.file, finding.kind, finding.detail) for finding in result.findings]


ORDERS = {"path": "orders", "max_age_minutes": 60}
GOOD = "id,amount\n1,2.50\n2,3.00\n"


def test_a_good_delivery_has_no_findings(tmp_path):
    deliver(tmp_path, "orders/a.csv", GOOD)
    deliver(tmp_path, "orders/b.csv", '\ufeffid,amount\r\n3,"1,5"\r\n\r\n4,"two\nlines"\r\n')
    deliver(tmp_path, "orders/notes.txt", "not looked at")
    (result,) = check(tmp_path, ORDERS | {"required_columns": ["id"], "key_columns": ["id"]})
    assert result == FolderResult(path="orders", files=2, newest=AT, findings=())
    assert summary((result,)) == "1 folder, 2 files: all in order"


@pytest.mark.parametrize(
    ("content", "options", "kind", "detail"),
    [
        ("", {}, Kind.EMPTY, "0 bytes."),
        ("id,amount\n", {}, Kind.EMPTY, "A header and no rows."),
        ("id,amount", {}, Kind.EMPTY, "A header and no rows."),
        ("\n\n  \n".replace(" ", ""), {}, Kind.EMPTY, "Blank lines only."),
        (
            "id,amount\n1,2\n2\n3,4,5\n",
            {},
            Kind.MALFORMED,
            "2 of 3 rows have another number of fields: row 2 has 1 fields, the header 2.",
        ),
        (b"id,name\n1,caf\xe9\n", {}, Kind.MALFORMED, "Not UTF-8, after line 0."),
        ('id,name\n1,"open\n', {}, Kind.MALFORMED, "No CSV at line 2: unexpected end of data."),
        (
            "id,name\n1," + "x" * 200_000 + "\n",
            {},
            Kind.MALFORMED,
            "No CSV at line 2: field larger than field limit (131072).",
        ),
        ("id,id,b\n1,2,3\n", {}, Kind.MALFORMED, "The header names a column twice: id."),
        ("id\n1\n", {"required_columns": ["amount", "id"]}, Kind.MALFORMED, "No column amount in the header."),
        ("id\n1\n", {"key_columns": ["key"]}, Kind.MALFORMED, "No column key in the header."),
        (
            "id,a\n1,2\n2,2\n1,2\n1,2\n",
            {},
            Kind.DUPLICATE_ROWS,
            "2 of 4 rows have all fields equal as an earlier one: 1, 2.",
        ),
        (
            "id,a\n1,2\n2,2\n1,3\n",
            {"key_columns": ["id"]},
            Kind.DUPLICATE_ROWS,
            "1 of 3 rows have the same id as an earlier one: 1.",
        ),
    ],
)
def test_a_fault_in_a_file_is_one_finding_that_says_where(tmp_path, content, options, kind, detail):
    deliver(tmp_path, "orders/a.csv", content)
    (result,) = check(tmp_path, ORDERS | options)
    assert found(result) == [("a.csv", kind, detail)]


def test_rows_are_equal_only_where_each_field_is(tmp_path):
    deliver(tmp_path, "orders/a.csv", 'a,b\n"1,",2\n1,",2"\n"1\x1f",2\n1,"\x1f2"\n')
    assert found(check(tmp_path, ORDERS)[0]) == []


def test_a_file_is_stale_after_the_limit_and_not_at_it(tmp_path):
    deliver(tmp_path, "orders/old.csv", "id\n1\n", age=timedelta(minutes=60, seconds=1))
    deliver(tmp_path, "orders/older.csv", "id\n2\n", age=timedelta(days=3))
    deliver(tmp_path, "orders/on-time.csv", "id\n3\n", age=timedelta(minutes=60))
    deliver(tmp_path, "orders/tomorrow.csv", "id\n4\n", age=timedelta(days=-1))
    (result,) = check(tmp_path, ORDERS)
    assert found(result) == [
        ("old.csv", Kind.STALE, "Last written 60 min ago; at most 60 min."),
        ("older.csv", Kind.STALE, "Last written 3 days ago; at most 60 min."),
    ]
    assert result.newest == AT + timedelta(days=1)


def test_the_same_content_is_found_across_folders_and_empty_files_are_not_duplicates(tmp_path):
    for name in ("a/1.csv", "b/1.csv", "b/2.csv"):
        deliver(tmp_path, name, GOOD)
    for name in ("a/0.csv", "b/0.csv"):
        deliver(tmp_path, name, "")
    first, second = check(tmp_path, {"path": "a", "max_age_minutes": 60}, {"path": "b", "max_age_minutes": 60})
    assert found(first) == [("0.csv", Kind.EMPTY, "0 bytes.")]
    assert found(second) == [
        ("0.csv", Kind.EMPTY, "0 bytes."),
        ("1.csv", Kind.DUPLICATE_FILE, "The same content as a/1.csv."),
        ("2.csv", Kind.DUPLICATE_FILE, "The same content as a/1.csv."),
    ]


def test_a_folder_that_is_missing_or_has_no_such_files_is_a_finding(tmp_path):
    deliver(tmp_path, "orders/a.txt", "x")
    deliver(tmp_path, "plain", "x")
    results = check(tmp_path, *({"path": path, "max_age_minutes": 1} for path in ("absent", "orders", "plain")))
    assert [found(result) for result in results] == [
        [("", Kind.MISSING, "There is no such folder.")],
        [("", Kind.MISSING, "No file matches *.csv.")],
        [("", Kind.MISSING, "There is no such folder.")],
    ]
    assert summary(results) == "3 folders, 0 files: 3 missing"


def test_what_is_no_plain_file_inside_the_root_is_not_read(tmp_path):
    root = tmp_path / "root"
    deliver(root, "orders/a.csv", GOOD)
    deliver(tmp_path, "secret.csv", "password\nhunter2\n")
    (root / "orders/link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "orders/loop.csv").symlink_to("loop.csv")
    (root / "orders/gone.csv").symlink_to("nowhere")
    (root / "orders/folder.csv").mkdir()
    os.mkfifo(root / "orders/pipe.csv")
    (result,) = check(root, ORDERS)
    assert [(finding.file, finding.kind) for finding in result.findings] == [
        ("folder.csv", Kind.UNREADABLE),
        ("gone.csv", Kind.UNREADABLE),
        ("link.csv", Kind.UNREADABLE),
        ("loop.csv", Kind.UNREADABLE),
        ("pipe.csv", Kind.UNREADABLE),
    ]
    assert "hunter2" not in markdown((result,), brief(), listed=200)


def test_a_link_that_stays_inside_the_root_is_followed(tmp_path):
    deliver(tmp_path, "archive/a.csv", GOOD)
    (tmp_path / "orders").symlink_to("archive")
    assert found(check(tmp_path, ORDERS)[0]) == []


def test_a_folder_that_leads_outside_the_root_makes_the_manifest_unusable(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "orders").symlink_to(tmp_path)
    with pytest.raises(UnusableManifest, match="'orders' leads outside"):
        check(root, ORDERS)


def test_a_folder_whose_link_leads_to_itself_cannot_be_read(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (result,) = check(tmp_path, ORDERS | {"path": "loop/x"})
    assert found(result) == [
        ("", Kind.UNREADABLE, "The folder cannot be read: Too many levels of symbolic links."),
    ]


def test_bounds_are_findings_and_nothing_is_left_out_silently(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MAX_FILES", 2)
    monkeypatch.setattr(checks, "MAX_FILE_BYTES", 20)
    monkeypatch.setattr(checks, "MAX_ROWS", 3)
    deliver(tmp_path, "orders/a.csv", "id\n1\n2\n3\n4\n5\n")
    deliver(tmp_path, "orders/b.csv", "id\n" + "1\n" * 10)
    deliver(tmp_path, "orders/c.csv", "")
    (result,) = check(tmp_path, ORDERS)
    assert found(result) == [
        ("a.csv", Kind.TOO_LARGE, "More than 3 rows; the rest was not read."),
        ("b.csv", Kind.TOO_LARGE, "23 bytes; files up to 20 are read."),
        ("", Kind.TOO_LARGE, "3 files match; the first 2 were looked at."),
    ]
    assert result.files == 3


def test_exactly_as_many_rows_as_are_read_are_no_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MAX_ROWS", 3)
    deliver(tmp_path, "orders/a.csv", "id\n1\n2\n3\n")
    assert found(check(tmp_path, ORDERS)[0]) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"[1]", "Input should be"),
        (b'{"folders": []}', "folders: "),
        (b'{"folders": null}', "folders: "),
        (b'{"folders": [{"path": "a"}]}', "folders/0/max_age_minutes: Field required"),
        (b'{"folders": [{"path": "a", "max_age_minutes": 0}]}', "folders/0/max_age_minutes: "),
        (b'{"folders": [{"path": "a", "max_age_minutes": true}]}', "folders/0/max_age_minutes: "),
        (b'{"folders": [{"path": "a", "max_age_minutes": "60"}]}', "folders/0/max_age_minutes: "),
        (b'{"folders": [{"path": "a", "max_age": 60}]}', "folders/0/max_age: Extra inputs"),
        (b'{"folders": [{"path": "../a", "max_age_minutes": 1}]}', "folders/0/path: "),
        (b'{"folders": [{"path": "/etc", "max_age_minutes": 1}]}', "folders/0/path: "),
        (b'{"folders": [{"path": "a\\u0000", "max_age_minutes": 1}]}', "folders/0/path: "),
        (b'{"folders": [{"path": "", "max_age_minutes": 1}]}', "folders/0/path: "),
        (b'{"folders": [{"path": "a", "max_age_minutes": 1, "pattern": "../*"}]}', "folders/0/pattern: "),
        (b'{"folders": [{"path": "a", "path": "b", "max_age_minutes": 1}]}', "stands twice"),
        (b'{"folders": [{"path": 1, "max_age_minutes": 1.5}]}', "folders/0/max_age_minutes: "),
    ],
)
def test_an_unusable_manifest_says_what_is_wrong_with_it(content, words):
    with pytest.raises(UnusableManifest) as caught:
        parse_manifest(content)
    assert words in str(caught.value)


def test_a_table_stays_a_table_whatever_files_are_called(tmp_path):
    deliver(tmp_path, "orders/a|b`\n<b>.csv", "")
    deliver(tmp_path, os.fsdecode(b"orders/z\xff.csv"), "")
    page = markdown(check(tmp_path, ORDERS), brief(), listed=200)
    rows = [line for line in page.splitlines() if "0 bytes" in line]
    assert [row.replace("\\|", "").count("|") for row in rows] == [5, 5]
    assert "<b>" not in page.replace("\\<", "").replace("\\>", "")
    assert page.encode()


async def run(content: bytes, heartbeats: list[tuple[Any, ...]], at: datetime = AT) -> tuple[AgentReport, InMemoryHost]:
    host = InMemoryHost()
    host.offer(brief(at), content=content)
    claim = await host.begin("run-1", at=at)
    context = RunContext(claim.brief, host, claim.token, heartbeat=lambda *details: heartbeats.append(details))
    report = await AgentRunner(agents).run("ingestion-check@1", CronStartEvent(run=context.brief), context)
    await asyncio.sleep(0)
    return report, host


def test_the_sample_is_checked_from_its_manifest_to_its_report(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.setenv("HORARIUM_EXAMPLE_ROOT", str(tmp_path))
    heartbeats: list[tuple[Any, ...]] = []
    now = datetime.now(UTC)
    with capture_logs():
        report, host = asyncio.run(run(MANIFEST.read_bytes(), heartbeats, now))
    assert report.summary == ("3 folders, 8 files: 1 empty, 1 malformed, 1 stale, 1 duplicate file, 1 duplicate rows")
    name = file_name(brief(now))
    assert report == AgentReport.succeeded(report.summary, outputs=[f"ingestion-reports/run-1/{name}"], cost=0)
    page = host.outputs("run-1")[name].decode()
    for line in [
        f"# Ingestion check for {now:%Y-%m-%dT%H:%M:%SZ}",
        f"**{report.summary}.**",
        "| orders | 3 | ",
        "| orders-2026-11-28.csv | duplicate file | The same content as orders/orders-2026-11-27.csv. |",
        "| customers-us.csv | malformed | 1 of 2 rows have another number of fields: row 1 has 4 fields, the header 3. |",
        "| payments-2026-11-24.csv | stale | Last written 3 days ago; at most 24 h. |",
        "| payments-2026-11-26.csv | duplicate rows | 1 of 3 rows have the same payment\\_id as an earlier one: p-3. |",
        "| payments-2026-11-27.csv | empty | 0 bytes. |",
    ]:
        assert line in page
    assert ("orders/orders-2026-11-26.csv",) in heartbeats


def test_the_sample_may_be_prepared_again_and_is_fresh_again(tmp_path):
    prepare(tmp_path)
    os.utime(tmp_path / "orders/orders-2026-11-26.csv", (0, 0))
    prepare(tmp_path)
    assert time.time() - (tmp_path / "orders/orders-2026-11-26.csv").stat().st_mtime < 60
    assert time.time() - (tmp_path / AGED).stat().st_mtime > 2 * 86_400


def test_without_a_named_root_the_working_directory_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.delenv("HORARIUM_EXAMPLE_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    deliver(tmp_path, "orders/a.csv", GOOD)
    with capture_logs():
        report, _ = asyncio.run(run(json.dumps({"folders": [ORDERS]}).encode(), []))
    assert report.summary == "1 folder, 1 file: all in order"


def test_an_unusable_manifest_is_a_failed_run_that_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HORARIUM_EXAMPLE_ROOT", str(tmp_path))
    report, host = asyncio.run(run(b'{"folders": 1}', []))
    assert report.outcome == "failed"
    assert report.summary.startswith("The manifest 'ingestion/manifest' is unusable: folders: ")
    assert host.outputs("run-1") == {}


def test_the_thread_of_a_cancelled_run_stops_at_its_next_breath(tmp_path, monkeypatch):
    monkeypatch.setenv("HORARIUM_EXAMPLE_ROOT", str(tmp_path))
    deliver(tmp_path, "orders/a.csv", GOOD)
    looking, cancelled, ended = threading.Event(), threading.Event(), threading.Event()
    real_run = Check.run

    def slow_run(self: Check) -> tuple[FolderResult, ...]:
        looking.set()
        assert cancelled.wait(10)
        try:
            return real_run(self)
        except Stopped:
            ended.set()
            raise

    monkeypatch.setattr(Check, "run", slow_run)

    async def live() -> None:
        task = asyncio.create_task(run(json.dumps({"folders": [ORDERS]}).encode(), []))
        await asyncio.to_thread(looking.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        assert await asyncio.to_thread(ended.wait, 10)

    asyncio.run(live())


def test_the_agent_is_schedulable_only_and_may_be_tried_again():
    (discovery,) = AgentRunner([IngestionCheck()]).discovery()
    assert (discovery.is_schedulable, discovery.is_conversational, discovery.idempotent) == (True, False, True)
    assert [(each["name"], each["default"]) for each in discovery.form] == [("listed", 200), ("cron", None)]


def test_a_profile_says_how_many_findings_are_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("HORARIUM_EXAMPLE_ROOT", str(tmp_path))
    for name in "abc":
        deliver(tmp_path, f"orders/{name}.csv", "")

    def page(runner: AgentTestRunner) -> str:
        with capture_logs():
            asyncio.run(runner.run(content=json.dumps({"folders": [ORDERS]}).encode(), at=AT))
        (written,) = runner.outputs.values()
        return written.decode()

    whole = page(AgentTestRunner(IngestionCheck()))
    assert (whole.count("0 bytes"), "not listed" in whole) == (3, False)
    short = page(AgentTestRunner(IngestionCheck(), config=IngestionConfig(listed=1)))
    assert (short.count("0 bytes"), "2 more findings are not listed." in short) == (1, True)


def test_a_large_delivery_is_checked_with_signs_of_life(tmp_path):
    deliver(tmp_path, "orders/a.csv", "id,amount\n" + "".join(f"{number},1\n" for number in range(25_000)))
    words: list[str] = []
    (result,) = check(tmp_path, ORDERS | {"key_columns": ["id"]}, breathe=words.append)
    assert found(result) == []
    assert words == ["orders", "orders/a.csv", "10,000 rows", "20,000 rows"]
