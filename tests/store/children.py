r"""What other processes do with a store, and report through a pipe.

This module is loaded before they are forked, so that slow imports happen only once.
"""

import os
import random
import resource
import time
from itertools import product

import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite.pysqlite  # noqa: F401

from polytopic import Document
from polytopic.errors import StoreError
from polytopic.store import Store
from polytopic.text import Analyzer

WORDS = ["".join(pair) for pair in product("bdfgkl", "aeiou")]
ANALYZER = Analyzer(None)
ANALYZER.terms("words")
LABELS = ["arts", "films", "science", "sport"]


def batch(rng, prefix, n_ids, size):
    """Return documents to learn: new ones, and other ones under the same ids."""
    return [
        Document(
            f"{prefix}{rng.randrange(n_ids)}",
            " ".join(rng.choices(WORDS, k=rng.randrange(12))),
            labels=rng.sample(LABELS, rng.randrange(1, 3)),
        )
        for _ in range(size)
    ]


def change(store, rng, prefix, n_ids=60, size=8):
    """Return a change, as the name of a method and what it takes."""
    ids = [f"{prefix}{rng.randrange(n_ids)}" for _ in range(size)]
    return rng.choice(
        [
            ("learn", batch(rng, prefix, n_ids, size)),
            ("learn", batch(rng, prefix, n_ids, size)),
            ("forget", ids[: size // 2]),
            ("relabel", {name: rng.sample(LABELS, 1) for name in ids}),
        ]
    )


def change_on(url, seed, pipe):
    """Change a store until killed, announcing each change before it begins and when it is done."""
    rng = random.Random(seed)
    with Store(url, analyzer=ANALYZER) as store:
        while True:
            name, argument = change(store, rng, "")
            pipe.send(("begins", name, argument))
            try:
                getattr(store, name)(argument)
            except StoreError as error:
                pipe.send(("failed", str(error), None))
                return
            pipe.send(("done", name, argument))


def write_for(seconds, url, seed, pipe):
    """Change own documents for a while; report them, and all receipts."""
    rng, receipts, known = random.Random(seed), [], {}
    with Store(url, analyzer=ANALYZER) as store:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name, argument = change(store, rng, f"{seed}-")
            receipts.append(getattr(store, name)(argument))
            apply(known, name, argument)
    pipe.send((known, receipts))


def read_for(seconds, url, seed, pipe):
    """Read a store for a while; report each revision and its contents."""
    revisions = []
    with Store(url, analyzer=ANALYZER) as store:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            counts = store.counts()
            revisions.append((counts.revision, counts.n_docs, None))
            verification = store.verify()
            assert verification.ok, verification.problems
            revisions.append((verification.revision, verification.documents, verification.digest))
    pipe.send(revisions)


def apply(known, name, argument):
    """Apply a change to plain documents by id: their words and labels."""
    if name == "learn":
        known.update({d.id: (sorted(d.text.split()), d.labels) for d in argument})
    elif name == "forget":
        for one in argument:
            known.pop(one, None)
    else:
        known.update(
            {one: (known[one][0], tuple(argument[one])) for one in argument if one in known}
        )


def open_as_nobody(url, pipe):
    """Open a store and learn without root privileges; report the result or the error."""
    with Store(url) as store:
        store.verify()  # imports what an unprivileged user may not be able to
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    messages = []
    for step in (
        lambda: Store(url).counts().n_docs,
        lambda: Store(url).learn([Document("9", "goal", labels=["sport"])]).learned,
    ):
        try:
            messages.append(step())
        except StoreError as error:
            messages.append(str(error))
    pipe.send(messages)


def learn_within(limit, url, documents, pipe):
    """Learn with a limit on file sizes, and then without it; report the results."""
    with Store(url) as store:
        message = _message_within(limit, store.learn, documents)
        pipe.send((message, store.verify().problems, store.revision))
        pipe.send(store.learn(documents).learned)


def forget_within(limit, url, name, pipe):
    """Forget with a limit on file sizes, and then without it; report the results."""
    with Store(url) as store:
        pipe.send(_message_within(limit, store.forget, [name]))
        pipe.send(store.verify().documents)
        pipe.send(store.forget([name]).missing)


def _message_within(limit, call, argument):
    """Call a function while no file may exceed a limit; return its result or error message."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        return str(call(argument))
    except StoreError as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
