"""A picture of how costs grow with what is stored, as SVG: readable on light and on dark pages, without a library."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import log
from typing import Final

from benchmarks.growth import LOGARITHMIC
from benchmarks.records import Line
from benchmarks.size import FULL
from horarium.errors import Misconfigured

WIDTH: Final = 960
_PANEL: Final = (270, 180)
_GAP: Final = (40, 64)
_LEFT: Final = 44
_TOP: Final = 64
_COLUMNS: Final = 3
_LEGEND: Final = 64
_COLOURS: Final = ("#0c8599", "#e8590c", "#7950f2", "#2f9e44", "#e64980", "#b08800")
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#1f2328}.faint{fill:#59636e}.axis{stroke:#8c959f;fill:none}"
    ".bound{stroke:#8c959f;stroke-dasharray:4 4;fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9198a1}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """How many times the cost at the smallest size each cost is, by size; `exponent` is what was fitted."""

    kind: str
    points: Sequence[tuple[float, float]]
    exponent: float


def drawn(lines: Iterable[Line]) -> str:
    """The picture of the suite `growth`: a panel for each database and for each of what there may be much of.

    Both axes are logarithmic, so that a power of the size is a straight line. Raises `Misconfigured` where there is no such
    figure.
    """
    grown = [line for line in lines if line["suite"] == "growth" and line["points"]]
    if not grown:
        raise Misconfigured(
            "There is no figure of the suite growth to draw. `python -m benchmarks growth` measures it."
        )
    panels = {title: [_curve(line) for line in several] for title, several in groupby(grown, key=_title)}
    most = max(times for curves in panels.values() for curve in curves for _, times in curve.points)
    height = _TOP + -(-len(panels) // _COLUMNS) * (_PANEL[1] + _GAP[1]) + _LEGEND
    parts = [_text(_LEFT, 20, _heading(grown)), _text(_LEFT, 36, _judged(), "faint")]
    for place, (title, curves) in enumerate(panels.items()):
        row, column = divmod(place, _COLUMNS)
        corner = (_LEFT + column * (_PANEL[0] + _GAP[0]), _TOP + row * (_PANEL[1] + _GAP[1]))
        parts += _panel(title, curves, corner, most=max(most, 2.0))
    parts += _legend(next(iter(panels.values())), height - _LEGEND + 8)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(_heading(grown))}"><style>{_STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _heading(lines: Sequence[Line]) -> str:
    day = max(line["day"] for line in lines)
    short = "" if all(line["size"] == FULL for line in lines) else ". A short run, whose figures are none"
    return f"How many times as long it takes where more is stored ({day}{short})"


def _judged() -> str:
    bound = f"the bound, cost ~ size^{LOGARITHMIC.at_most:g}, a little less than a logarithm"
    return f"Dashed: {bound}. Below each panel: the fitted exponents."


def _title(line: Line) -> str:
    return str(line["name"]).partition(" by ")[2]


def _curve(line: Line) -> _Curve:
    first = line["points"][0][1]
    points = [(size, cost / first) for size, cost in line["points"]]
    return _Curve(kind=line["name"].partition(" by ")[0], points=points, exponent=line["ours"])


def _panel(title: str, curves: Sequence[_Curve], corner: tuple[int, int], *, most: float) -> list[str]:
    left, top = corner
    width, height = _PANEL
    sizes = [size for size, _ in curves[0].points]
    least = min(0.5, *(times for curve in curves for _, times in curve.points))

    def across(size: float) -> float:
        return left + width * log(size / sizes[0]) / log(sizes[-1] / sizes[0])

    def up(times: float) -> float:
        return top + height - height * log(times / least) / log(most / least)

    def line(points: Iterable[tuple[float, float]], attributes: str) -> str:
        path = " ".join(f"{across(size):.1f},{up(times):.1f}" for size, times in points)
        return f'<polyline points="{path}" {attributes}/>'

    assert LOGARITHMIC.at_most is not None, "it bounds an exponent"
    bound = [(size, (size / sizes[0]) ** LOGARITHMIC.at_most) for size in sizes]
    return [
        _text(left, top - 4, f"by {title}"),
        f'<path class="axis" d="M{left} {top}V{top + height}H{left + width}"/>',
        *(_text(left - 6, up(times) + 4, f"{times:g}x", "faint", "end") for times in _ticks(least, most)),
        *(
            _text(across(size), top + height + 15, f"{size:,.0f}", "faint", _anchor(place, len(sizes)))
            for place, size in enumerate(sizes)
        ),
        *(
            _text(left + place * width / len(curves), top + height + 31, f"{_exponent(curve)}", colour=colour)
            for place, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False))
        ),
        line(bound, 'class="bound"'),
        *(
            line(curve.points, f'fill="none" stroke="{colour}" stroke-width="2"')
            for curve, colour in zip(curves, _COLOURS, strict=False)
        ),
    ]


def _exponent(curve: _Curve) -> str:
    return f"{round(curve.exponent, 2) + 0.0:.2f}"  # without the sign that a rounded nothing may have


def _anchor(place: int, of: int) -> str:
    """The first text begins where it stands, and the last one ends there: so they keep out of the panels beside theirs."""
    return "start" if place == 0 else "end" if place == of - 1 else "middle"


def _ticks(least: float, most: float) -> list[float]:
    """The powers of two within the bounds, or of four or more where those would be many."""
    step = 2
    while most / least > step**6:
        step *= 2
    powers = [float(step) ** power for power in range(-20, 21)]
    return [power for power in powers if least <= power <= most]


def _legend(curves: Sequence[_Curve], top: int) -> list[str]:
    parts = []
    for place, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        row, column = divmod(place, _COLUMNS)
        left, line = _LEFT + column * (_PANEL[0] + _GAP[0]), top + row * 20
        parts.append(f'<path d="M{left} {line}h24" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(left + 30, line + 4, curve.kind))
    return parts


def _text(left: float, top: float, text: str, kind: str = "", anchor: str = "start", *, colour: str = "") -> str:
    about = (f' class="{kind}"' if kind else "") + (f' style="fill:{colour}"' if colour else "")
    return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"{about}>{escape(text)}</text>'
