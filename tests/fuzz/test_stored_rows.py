"""Stored rows: for any values in a table, a call works or raises a PolytopicError."""

import shutil
import sqlite3
import warnings
from random import Random

import pytest

from polytopic import Document, Store
from polytopic.corpus import load_sample
from polytopic.errors import PolytopicError
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.mutation import NUMBERS, mutated_bytes

CALLS = {
    "info": lambda store: store.info(),
    "verify": lambda store: store.verify(),
    "counts": lambda store: store.counts(),
    "history": lambda store: store.history(),
    "current": lambda store: store.current(),
    "fit": lambda store: store.fit("nb"),
    "learn": lambda store: store.learn([Document(id="new", text="a goal", labels=["sport"])]),
    "forget": lambda store: store.forget(["new"]),
}


def damaged(seed, random: Random):
    """Draw a value of a table, and its replacement."""
    table, column, rowid, value = random.choice(seed)
    kinds = [None, "", "x", b"", *(n for n in NUMBERS if abs(n) < 2**63), "\0", -(2**62)]
    if isinstance(value, bytes):
        kinds += [mutated_bytes(value, random) for _ in range(8)]
    if isinstance(value, str):
        content = mutated_bytes(value.encode(), random)
        kinds += [value + "x", value[:-1], content.decode("utf-8", "replace")] * 3
    if isinstance(value, int):
        kinds += [value + 1, value - 1, -value, value * 1000] * 2
    return table, column, rowid, random.choice(kinds)


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
def test_stored_rows(tmp_path, long):
    """Each value of each table is replaced in turn, by one of its own or of another type."""
    sound, path = tmp_path / "sound.db", tmp_path / "damaged.db"
    with Store(sound) as store:
        store.learn(load_sample()[:30])
        store.publish(store.fit("nb"))
    with sqlite3.connect(sound) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        tables = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        ]
        places = [
            (table, columns[0], row[0], value)
            for table in tables
            for rows in [database.execute(f"SELECT rowid, * FROM {table}")]  # noqa: S608
            for names in [[one[0] for one in rows.description]]
            for row in rows.fetchmany(20)
            for columns, value in zip([(name,) for name in names[1:]], row[1:], strict=True)
        ]
    database.close()

    def target(change):
        table, column, rowid, value = change
        shutil.copy(sound, path)
        with sqlite3.connect(path) as database:
            try:
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE rowid = ?",  # noqa: S608
                    (value, rowid),
                )
            except sqlite3.Error:
                return
        database.close()
        for call in CALLS.values():
            try:
                with warnings.catch_warnings(), Store(path, create=False) as store:
                    warnings.simplefilter("ignore")
                    call(store)
            except PolytopicError:
                continue

    assert fuzz(target, [places], damaged, long=long) > 0
