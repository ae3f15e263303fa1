"""The demonstration of ``make run``: learn the bundled sample, label new texts, serve the page."""

from __future__ import annotations

import gc
import secrets
import subprocess
import sys
import threading
from pathlib import Path

from polytopic.cli import INTERRUPTED

NEW_TEXTS = [
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
STORE = "sample.db"


def main(path: str = STORE) -> None:
    """Learn the bundled sample, label three new texts, and serve the page.

    If the store exists already, it is served at once.
    """
    from polytopic.cli.serve import LOCAL_NAMES, address_of, listen, serve

    display = None
    if not Path(path).exists():
        learn(path)
        command = [sys.executable, "-m", "polytopic.cli.demo", "show", path]
        display = subprocess.Popen(command)  # noqa: S603
    token = secrets.token_urlsafe(32)
    with listen("127.0.0.1", 8765, any_port=True) as listener:

        def print_address() -> None:
            if display is not None:
                display.wait()
            print(f"\nOpen {address_of(listener)}/#token={token}")
            print("to label a text, see why, and correct it. Press Ctrl+C to stop.", flush=True)

        gc.disable()  # while loading, when there is nothing to free
        threading.Thread(target=print_address, daemon=True).start()
        from polytopic.server import create_app  # slow; meanwhile, the texts are shown

        serve(create_app(path, own_token=token, hosts=LOCAL_NAMES), listener)


def show(path: str) -> None:
    """Label three new texts, and explain why."""
    from polytopic import Store
    from polytopic.cli.explain import show

    with Store(path, create=False) as store:
        labeler = store.labeler()
    print(
        f"{path} knows {labeler.training_['documents']} news items with {labeler.classes_.size} "
        "labels. Three new texts:\n"
    )
    for text in NEW_TEXTS:
        show(labeler.explain(text), text, k=6)
        print()
    print("Use your own: .venv/bin/polytopic train YOUR.csv --to my.model (see README.md).")


def learn(path: str) -> None:
    """Create a store with the sample, and with the three texts to review."""
    from polytopic import Store
    from polytopic.corpus import Document, load_sample
    from polytopic.labels import LabelTree

    documents = load_sample()
    tree = LabelTree.from_names({label for document in documents for label in document.labels})
    new = [Document(f"fresh-{k}", text=text) for k, text in enumerate(NEW_TEXTS, start=1)]
    temporary = f"{path}.new"
    Path(temporary).unlink(missing_ok=True)
    with Store(temporary, keep_texts=True, tree=tree) as store:
        store.learn([*documents, *new])
        store.publish(note="the bundled sample")
    Path(temporary).rename(path)  # completely or not at all


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["show"]:
            show(sys.argv[2])
        else:
            main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
