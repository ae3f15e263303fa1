"""Small random trees of labels."""

from hypothesis import strategies as st

from polytopic.labels import LabelTree

NAMES = st.text(min_size=1, max_size=4)
LANGUAGES = st.sampled_from(["", "cs", "en", "en-gb", "fi"])


@st.composite
def trees(draw, labels=None):
    """Draw a forest: the parent of a label is an earlier one or none; some labels have names."""
    labels = st.text(min_size=1, max_size=3) if labels is None else labels
    nodes = draw(st.lists(labels, unique=True, max_size=12))
    parents = {
        label: draw(st.sampled_from([None, *nodes[:place]])) for place, label in enumerate(nodes)
    }
    if not nodes:
        return LabelTree({})
    some = st.sampled_from(nodes)
    by_language = st.dictionaries(LANGUAGES, NAMES, max_size=3)
    others = st.dictionaries(LANGUAGES, st.lists(NAMES, max_size=3), max_size=3)
    return LabelTree(
        parents,
        draw(st.dictionaries(some, NAMES | by_language, max_size=6)),
        alternatives=draw(st.dictionaries(some, others, max_size=3)),
        notations=draw(st.dictionaries(some, NAMES, max_size=3)),
    )
