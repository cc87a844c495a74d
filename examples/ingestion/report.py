"""What was found, in one line and as a page in Markdown."""

from collections import Counter

from examples.ingestion.checks import FolderResult, Kind
from horarium.agents import RunBrief
from horarium.schedule.identity import instant_text

_WHAT_TO_DO = {
    Kind.MISSING: "Ask the sender whether it was delivered, and where to.",
    Kind.UNREADABLE: "Give the agent the right to read it, or move it into the folder.",
    Kind.EMPTY: "Ask the sender for a full delivery; do not load this one.",
    Kind.MALFORMED: "Do not load it. Send this line to its sender.",
    Kind.STALE: "See whether the delivery of this period came under another name.",
    Kind.DUPLICATE_FILE: "Load one of the two; then remove the other.",
    Kind.DUPLICATE_ROWS: "Load it with the last row of each key, or ask the sender which is right.",
    Kind.TOO_LARGE: "Split it, or check it where it is loaded.",
}


def summary(results: tuple[FolderResult, ...]) -> str:
    """`3 folders, 12 files: 1 stale, 1 empty`, the findings from worst to mildest; `all in order` where there are
    none."""
    counts = Counter(finding.kind for result in results for finding in result.findings)
    found = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind]) or "all in order"
    folders, files = len(results), sum(result.files for result in results)
    return f"{folders} folder{'s' * (folders != 1)}, {files:,} file{'s' * (files != 1)}: {found}"


def markdown(results: tuple[FolderResult, ...], brief: RunBrief, *, listed: int) -> str:
    """The page: what was checked and for which instant, an overview, and for each folder the first `listed`
    findings with what to do."""
    lines = [
        f"# Ingestion check for {instant_text(brief.nominal_time)}",
        "",
        f"**{summary(results)}.**",
        "",
        (
            f"Looked at {instant_text(brief.actual_time.replace(microsecond=0))} by `{brief.agent_version}`, "
            f"run `{brief.run_id}`, schedule `{brief.schedule.schedule_id}` revision {brief.schedule.revision}."
        ),
        "",
        "| folder | files | newest file | findings |",
        "| --- | ---: | --- | ---: |",
    ]
    for result in results:
        newest = instant_text(result.newest.replace(microsecond=0)) if result.newest else "-"
        lines.append(f"| {_cell(result.path)} | {result.files} | {newest} | {len(result.findings)} |")
    for result in results:
        lines += ["", f"## {_cell(result.path)}", ""]
        if not result.findings:
            lines.append("All in order.")
            continue
        lines += ["| file | finding | detail | what to do |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {_cell(finding.file) or '(the folder)'} | {finding.kind} | {_cell(finding.detail)} "
            f"| {_WHAT_TO_DO[finding.kind]} |"
            for finding in result.findings[:listed]
        ]
        if len(result.findings) > listed:
            lines += ["", f"{len(result.findings) - listed:,} more findings are not listed."]
    return "\n".join(lines) + "\n"


def file_name(brief: RunBrief) -> str:
    """The name of the page, by the nominal time: a repeated attempt of a run writes the same file."""
    return f"ingestion-check-{brief.nominal_time:%Y-%m-%dT%H%M%SZ}.md"


def _cell(text: str) -> str:
    """A stranger's text within a table: file names may hold line breaks, bars, and bytes that are no characters."""
    clean = "".join(each if each.isprintable() else "\ufffd" for each in text)
    for special in "\\`*_[]<>|":
        clean = clean.replace(special, f"\\{special}")
    return clean
