"""Documents for hypothesis to draw."""

from datetime import timedelta, timezone

from hypothesis import strategies as st

from polytopic.corpus import Document

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters)
names = st.text(characters, min_size=1)
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.none() | st.datetimes(timezones=st.none() | offsets)
splits = st.none() | st.sampled_from(["train", "test", "außen"])
counts = st.integers(1, 2**53) | st.floats(1e-300, 2.0**53)


contents = st.one_of(
    st.fixed_dictionaries({"text": texts}),
    st.fixed_dictionaries({"counts": st.dictionaries(texts, counts)}),
    st.fixed_dictionaries({"fields": st.dictionaries(texts, texts)}),
)


def documents(*, content=contents, labels=names, **others):
    """Draw a list of documents, each with one of the contents and labels."""
    others = st.fixed_dictionaries({"labels": st.lists(labels), **others})
    document = st.builds(
        lambda content, others: Document(**{"id": "1", **content, **others}), content, others
    )
    return st.lists(document)
