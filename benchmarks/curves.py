"""How a cost grows with a size: a fitted exponent, and a plot of one line."""

from collections.abc import Sequence
from math import ceil, log

_BARS = "▁▂▃▄▅▆▇█"


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The `b` of `cost = a * size**b`, by least squares on the logarithms: 0 is flat, 1 is linear.

    Sizes and costs are positive, and there are at least two sizes that differ. A logarithm has no exponent of its own; from
    1,000 to 100,000 it grows by 5/3, which is fitted as 0.11.
    """
    across, up = [log(size) for size in sizes], [log(cost) for cost in costs]
    middle, height = sum(across) / len(across), sum(up) / len(up)
    slope = sum((x - middle) * (y - height) for x, y in zip(across, up, strict=True))
    return slope / sum((x - middle) ** 2 for x in across)


def bars(costs: Sequence[float]) -> str:
    """One block a cost, as high as it is beside the greatest: a flat cost fills the line."""
    most = max(costs)
    return "".join(_BARS[max(ceil(len(_BARS) * cost / most), 1) - 1] for cost in costs)
