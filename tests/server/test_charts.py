"""Coordinates of bars and points in small charts."""

from polytopic.server.pages.rendering import (
    CHART_HEIGHT,
    CHART_WIDTH,
    Bar,
    Point,
    bars,
    points,
)


def test_bars_fill_the_chart():
    """The highest bar has the chart's height; each takes four fifths of its share of the width."""
    half, full = CHART_WIDTH / 2, CHART_HEIGHT

    assert bars(["2024", "2025"], [1.0, 4.0]) == [
        Bar(0.1 * half, 0.75 * full, 0.8 * half, 0.25 * full, "2024", 1.0),
        Bar(1.1 * half, 0.0, 0.8 * half, full, "2025", 4.0),
    ]


def test_low_bars_stay_low():
    """Values below one are drawn relative to one, so that they do not look large."""
    assert [bar.height for bar in bars(["a", "b"], [0.5, 0.0])] == [CHART_HEIGHT / 2, 0.0]
    assert bars([], []) == []


def test_points_are_centred():
    """Points range from 0 at the bottom to the top; missing values have no point."""
    assert points(["a", "b", "c"], [0.5, None, 2.0], 2.0) == [
        Point(CHART_WIDTH / 6, 0.75 * CHART_HEIGHT, "a", 0.5),
        Point(CHART_WIDTH * 5 / 6, 0.0, "c", 2.0),
    ]
    assert points([], [], 1.0) == []
