"""After any changes, a store equals one built from scratch from the remaining documents."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from polytopic import Document
from polytopic.errors import StoreError
from polytopic.store import Receipt
from tests.store.plain import (
    IDS,
    Known,
    bag_of,
    batches,
    label_sets,
    model_bytes,
    open_store,
    table_of,
    table_of_documents,
)

MODELS = ["nb", "pmm1", "pmm2", "pdmm"]
BOUNDS = st.sampled_from([None, "2024-01-01", "2024-01-02T10:00:00Z", "2024-06-01", "2099-01-01"])


class Lives(RuleBasedStateMachine):
    """A store, and plain dictionaries of what it knows now and knew at each revision.

    ``new_url`` gives places for it, and ``new_path`` for stores to compare and merge with, in
    files; ``gone`` has a pair of revisions, first learned and forgotten, for each forgotten
    document.
    """

    new_url = new_path = None

    def __init__(self):
        super().__init__()
        self.url = self.new_url()
        self.store = open_store(self.url)
        self.now, self.then, self.gone, self.first = {}, {0: {}}, [], {}
        self.last_call = self.store.learn, []

    def teardown(self):
        """Close the connections."""
        self.store.close()

    def _done(self, receipt: Receipt, before: dict):
        """Compare a receipt with what changed, and remember the revision."""
        fresh = self.now.keys() - before.keys()
        changed = self.now != before
        assert receipt.changed == changed
        assert receipt.revision_after == receipt.revision_before + changed == self.store.revision
        assert receipt.digest_after == self.store.digest
        for name in fresh:
            self.first[name] = receipt.revision_after
            self.now[name] = Known(*_parts(self.now[name]), receipt.time)
        self.then[receipt.revision_after] = dict(self.now)
        assert receipt.new_labels == sorted(_labels(self.now) - _labels(before))
        assert receipt.gone_labels == sorted(_labels(before) - _labels(self.now))

    def _learn(self, batch):
        for document in batch:
            known = self.now.get(document.id)
            self.now[document.id] = Known(
                bag_of(document),
                document.labels,
                document.time and document.time.timestamp(),
                known and known.moment,
            )

    # What may happen

    @initialize(batch=batches(8))
    def begin(self, batch):
        """Learn some documents."""
        self.learn(batch)

    @rule(batch=batches())
    def learn(self, batch):
        """Learn documents: new ones, known ones, and changed ones."""
        before = dict(self.now)
        self._learn(batch)

        receipt = self.store.learn(iter(batch))

        ids = {document.id for document in batch}
        other = [name for name in ids & before.keys() if self.now[name] != before[name]]
        assert receipt.learned == len(ids - before.keys())
        assert receipt.corrected == len(other)
        assert receipt.unchanged == len(ids & before.keys()) - len(other)
        self._done(receipt, before)
        self.last_call = self.store.learn, batch

    @rule(labels=st.dictionaries(st.sampled_from(IDS), label_sets(), max_size=3))
    def relabel(self, labels):
        """Give documents other labels."""
        before = dict(self.now)
        for name in labels.keys() & before.keys():
            old = before[name]
            self.now[name] = Known(old.bag, tuple(labels[name]), old.time, old.moment)

        receipt = self.store.relabel(labels)

        assert receipt.missing == [name for name in labels if name not in before]
        self._done(receipt, before)
        self.last_call = self.store.relabel, labels

    @rule(ids=st.lists(st.sampled_from(IDS), max_size=3), purge=st.booleans())
    def forget(self, ids, purge):
        """Forget documents, which are then unknown at all revisions."""
        before = dict(self.now)
        for name in set(ids) & before.keys():
            del self.now[name]
            self.gone.append((self.first.pop(name), self.store.revision + 1))
            for known in self.then.values():
                known.pop(name, None)

        receipt = self.store.forget(ids, purge=purge)

        assert receipt.forgotten == len(before) - len(self.now)
        assert receipt.missing == [name for name in dict.fromkeys(ids) if name not in before]
        self._done(receipt, before)
        self.last_call = self.store.forget, ids

    @rule(batch=batches(ids=[*IDS[:2], "a", "b", "c"]))
    def merge(self, batch):
        """Merge another store, which is rejected as a whole if a document differs there."""
        before = dict(self.now)
        with open_store(self.new_path()) as other:
            other.learn(batch)
            self._learn({document.id: document for document in batch}.values())
            if any(self.now[name] != before[name] for name in before):
                self.now = before
                with pytest.raises(StoreError, match=r"in both stores .* Nothing was merged\."):
                    self.store.merge(other)
            else:
                self._done(self.store.merge(other), before)
                assert not self.store.merge(other).changed
        self.last_call = self.store.learn, []

    @rule()
    def try_again(self):
        """Repeat the last change, which changes nothing."""
        call, argument = self.last_call
        revision, digest = self.store.revision, self.store.digest

        receipt = call(argument)

        assert not receipt.changed
        assert (receipt.learned, receipt.corrected, receipt.forgotten) == (0, 0, 0)
        assert (self.store.revision, self.store.digest) == (revision, digest)

    @rule()
    def open_again(self):
        """Close the store, and open it with its stored settings."""
        self.store.close()
        self.store = open_store(self.url, create=False)
        self.last_call = self.store.learn, []

    # What always holds

    @invariant()
    def is_what_is_known(self):
        """Check that the table is that of the known documents and agrees with the ledger."""
        snapshot = self.store.counts()

        assert snapshot == table_of(self.now.values())
        assert (snapshot.revision, snapshot.n_forgotten) == (self.store.revision, 0)
        verification = self.store.verify()
        assert verification.ok, verification.problems
        assert verification.documents == len(self.now)
        assert verification.digest == self.store.digest

    @rule(data=st.data())
    def look_back(self, data):
        """Check that a revision has what was known then and was not forgotten since."""
        revision = data.draw(st.sampled_from(sorted(self.then)))
        snapshot = self.store.counts(as_of=revision)

        assert snapshot == table_of(self.then[revision].values())
        assert snapshot.revision == revision
        assert snapshot.n_forgotten == sum(first <= revision < last for first, last in self.gone)

    @rule(data=st.data(), since=BOUNDS, until=BOUNDS, labels=st.none() | label_sets())
    def look_through_a_window(self, data, since, until, labels):
        """Check that a window is a plain filter."""
        revision = data.draw(st.sampled_from(sorted(self.then)))
        known = [
            one
            for one in self.then[revision].values()
            if (labels is None or set(labels) & set(one.labels))
            and (since is None or _seconds(since) <= _moment(one))
            and (until is None or _seconds(until) > _moment(one))
        ]

        snapshot = self.store.counts(as_of=revision, since=since, until=until, labels=labels)

        assert snapshot == table_of(known)

    @precondition(lambda self: any(known.labels and known.bag for known in self.now.values()))
    @rule(model=st.sampled_from(MODELS), data=st.data())
    def fit(self, model, data):
        """Check that a model has the same bits as that of a store of the remaining documents."""
        with open_store(self.new_path()) as fresh:
            documents = list(self.store.documents())
            fresh.learn(data.draw(st.permutations(documents)))

            assert fresh.counts() == self.store.counts() == table_of_documents(documents)
            assert fresh.digest == self.store.digest
            assert model_bytes(fresh.fit(model)) == model_bytes(self.store.fit(model))


def _parts(known):
    return known.bag, known.labels, known.time


def _labels(known):
    return {label for one in known.values() for label in one.labels}


def _seconds(time):
    return Document("1", text="", time=time).time.timestamp()


def _moment(known):
    return _seconds(known.moment) if known.time is None else known.time


def run(new_url, new_path, examples, steps):
    """Run the machine with stores at new places."""
    places = {"new_url": staticmethod(new_url), "new_path": staticmethod(new_path)}
    machine = type("LivesThere", (Lives,), places)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps)
    )


def test_any_history_leaves_what_is_known(new_url, new_path):
    """Any interleaving of changes gives the store of the remaining documents."""
    run(new_url, new_path, 15, 15)


@pytest.mark.long
def test_any_long_history_leaves_what_is_known(new_url, new_path):
    """The same, with many more and longer histories."""
    run(new_url, new_path, 60, 30)
