"""Numbers that options take."""

import math

import click


class FiniteFloat(click.FloatRange):
    """A finite number in a range; click's own ranges let NaN through."""

    def convert(self, value, param, ctx):
        """Return the number, or fail with a sentence."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
