"""Growth is told as what it is."""

import pytest

from benchmarks.curves import bars, exponent

SIZES = (1_000, 10_000, 100_000)


@pytest.mark.parametrize("power", [0, 0.1, 0.5, 1, 2, -0.2])
def test_a_power_is_found_whatever_its_factor(power):
    assert exponent(SIZES, [7 * size**power for size in SIZES]) == pytest.approx(power)
    assert exponent(SIZES, [0.01 * size**power for size in SIZES]) == pytest.approx(power)


def test_between_powers_the_line_goes_through_all_of_them():
    assert exponent((1, 10, 100), (1, 1, 10)) == pytest.approx(0.5)
    assert exponent((1, 10, 100), (1, 10, 1)) == pytest.approx(0)


def test_a_flat_cost_fills_the_line_and_a_linear_one_climbs():
    assert bars([3, 3, 3]) == "███"
    assert bars([1, 10, 100]) == "▁▁█"
    assert bars([50, 100, 25]) == "▄█▂"
