"""Arrays of models, as files hold them."""

import pytest
from sklearn.base import clone

from polytopic import CoL
from tests.models.test_every_model import NAMES, fitted


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("beta", -1.0), ("words", -1.0)])
def test_topics_that_are_no_distributions(name, value):
    """One number that cannot be a probability or a count is enough to refuse a model."""
    model = fitted(CoL(n_topics=4, tol=0.1))
    arrays = model.to_arrays()
    damaged = arrays[name].copy()
    damaged.flat[0] = value

    with pytest.raises(ValueError, match="must be from"):
        clone(model).from_arrays(arrays | {name: damaged}, labels=NAMES, n_words=6)
