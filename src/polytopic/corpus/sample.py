"""The corpus that comes with the package."""

from polytopic.corpus.document import Document
from polytopic.corpus.readers import read_documents


def load_sample() -> list[Document]:
    """Return the bundled news: short texts with their labels and times.

    Returns
    -------
    list of Document
        In the order of the file.
    """
    from importlib.resources import files  # here: it is slow to import

    with files("polytopic.corpus").joinpath("data/news.jsonl").open("rb") as file:
        return list(read_documents(file, format="jsonl"))
