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
    "assign": lambda store: store.assign(),
    "find": lambda store: store.find(topic="science", text="goal"),
    "count topics": lambda store: store.count_topics(),
    "learn": lambda store: store.learn([Document(id="new", text="a goal", labels=["sport"])]),
    "forget": lambda store: store.forget(["new"]),
}


def damaged(seed, random: Random):
    """Draw a value of a table, and its replacement."""
    table, column, key, value = random.choice(seed)
    kinds = [None, "", "x", b"", *(n for n in NUMBERS if abs(n) < 2**63), "\0", -(2**62)]
    if isinstance(value, bytes):
        kinds += [mutated_bytes(value, random) for _ in range(8)]
    if isinstance(value, str):
        content = mutated_bytes(value.encode(), random)
        kinds += [value + "x", value[:-1], content.decode("utf-8", "replace")] * 3
    if isinstance(value, int):
        kinds += [value + 1, value - 1, -value, value * 1000] * 2
    return table, column, key, random.choice(kinds)


def key_columns(database, table):
    """Return the columns that identify the rows of a table."""
    columns = database.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [name for _, name, _, _, _, place in columns if place]
    return keys or ["rowid"]


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
def test_stored_rows(tmp_path, long):
    """Each value of each table is replaced in turn, by one of its own or of another type."""
    sound, path = tmp_path / "sound.db", tmp_path / "damaged.db"
    with Store(sound) as store:
        store.learn(load_sample()[:30])
        store.publish(store.fit("nb"))
        store.learn([Document(id="unlabelled", text="a goal in the match")])
        store.assign()
        store.find(text="goal")
    with sqlite3.connect(sound) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        tables = [
            name
            for name, sql in database.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
            )
            if not name.startswith("sqlite_") and "VIRTUAL" not in sql
        ]
        places = [
            (table, name, dict(zip(keys, row, strict=False)), value)
            for table in tables
            for keys in [key_columns(database, table)]
            for rows in [database.execute(f"SELECT {', '.join(keys)}, * FROM {table}")]  # noqa: S608
            for names in [[one[0] for one in rows.description[len(keys) :]]]
            for row in rows.fetchmany(20)
            for name, value in zip(names, row[len(keys) :], strict=True)
        ]
    database.close()

    def target(change):
        table, column, key, value = change
        is_row = " AND ".join(f"{name} IS ?" for name in key)
        shutil.copy(sound, path)
        with sqlite3.connect(path) as database:
            try:
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {is_row}",  # noqa: S608
                    (value, *key.values()),
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
