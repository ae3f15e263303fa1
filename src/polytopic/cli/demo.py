"""What ``make run`` shows: a model of the bundled sample labels three fresh texts."""

from __future__ import annotations

FRESH = [
    "Striker returns after a year of rehabilitation\nThe forward who tore a knee ligament last "
    "spring came off the bench in the league match on Sunday and scored the winning goal. The "
    "club's doctors credit a new treatment: patients in a hospital trial healed weeks earlier.",
    "Satellite data to warn wind farms of storms\nA new satellite will measure winds from orbit "
    "and pass them to grid operators within minutes. Engineers expect turbines to produce more "
    "power and to be switched off in time when a storm comes, as a warmer climate brings more.",
    "Novel about a village teacher comes to the cinema\nThe prize-winning novel has been made "
    "into a film by a young director, who shot it in the school where the author once taught. "
    "Readers of the book will miss the last chapter; audiences at the festival did not.",
]


def main() -> None:
    """Train on the bundled sample, then show labels, shares and words of three fresh texts."""
    from polytopic import Labeler
    from polytopic.cli.explain import show
    from polytopic.corpus import load_sample

    documents = load_sample()
    labeler = Labeler().fit(documents)
    print(
        f"Learned {len(documents)} news items with {labeler.classes_.size} labels. "
        "Three fresh texts:\n"
    )
    for text in FRESH:
        show(labeler.explain(text), text, words=6)
        print()
    print(
        "Next: polytopic train YOUR.csv --to my.model && polytopic suggest my.model NEW.csv\n"
        "(in .venv/bin; see README.md)"
    )


if __name__ == "__main__":
    main()
