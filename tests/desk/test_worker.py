"""The worker of a desk does what is due, raises alarms, and survives everything."""

import datetime
import json
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from polytopic import Document
from polytopic.desk.alarms import Alarm, Alarms, deliver, find_strange_words, find_trends
from polytopic.desk.settings import AlarmSettings, read_settings
from polytopic.desk.worker import Worker
from polytopic.store import Store
from tests.desk.newsserver import article, rss
from tests.store.plain import open_store

WORDS = {"sport": "goal match striker league", "space": "orbit rover launch crater"}


class Log:
    """Remembers events."""

    def __init__(self):
        self.events = []

    def __getattr__(self, level):
        return lambda event, **facts: self.events.append((level, event, facts))

    def named(self, name):
        """Return the facts of the events with a name."""
        return [facts for _, event, facts in self.events if event == name]


def labelled(n_docs, seed=0, **settings):
    """Return documents of two topics."""
    rng, documents = random.Random(seed), []
    for k in range(n_docs):
        label = rng.choice(sorted(WORDS))
        text = " ".join(rng.choices(WORDS[label].split(), k=20))
        time_of = f"2026-01-{1 + k * 28 // n_docs:02d}T{k % 24:02d}:00:00"
        documents.append(Document(f"d{k}", text, labels=[label], time=time_of, **settings))
    return documents


@pytest.fixture
def desk(tmp_path, news):
    """Return the settings of a desk with one source, and its store with labelled documents."""
    (tmp_path / "desk.toml").write_text(
        '[desk]\nstore = "news.db"\nlog = "json"\n'
        f'[[sources]]\naddress = "{news.root}/rss.xml"\nevery = "0s"\n'
        '[model]\nname = "nb"\nrule = "cohort"\n'
        "[fetch]\ndelay = 0\nbackoff = 0\nallow_private = true\n"
        "[alarms]\nfailures = 2\n"
    )
    for k in range(5):
        news.put(f"/{k}", article(k), etag=f'"{k}"')
    news.put("/rss.xml", rss([(f"{news.root}/{k}", "x") for k in range(5)]), kind="text/xml")
    with Store(tmp_path / "news.db", keep_texts=True) as store:
        store.learn(labelled(60))
        yield read_settings(tmp_path / "desk.toml", {}), store


def test_a_cycle(news, desk):
    """Articles are learned, a model with a rule is published, and everything gets topics."""
    settings, store = desk
    log = Log()
    worker = Worker(settings, store, log, threading.Event())

    worker.cycle()

    assert log.named("ingested")[0]["learned"] == 5
    assert log.named("published") == [{"model": 1, "documents": 60}]
    assert log.named("assigned") == [{"documents": 65, "model": 1}]
    assert type(store.current().rule).__name__ == "UnconstrainedCohort"
    assert {match.model for match in store.find(k=100)} == {1}
    log.events.clear()
    worker.cycle()
    assert log.named("ingested")[0]["not_modified"] == 5
    assert [event for _, event, _ in log.events] == ["ingested"]


def test_a_refresh_when_it_is_due(news, desk):
    """What editors have labelled since is learned, and all documents get topics again."""
    settings, store = desk
    log = Log()
    worker = Worker(settings, store, log, threading.Event())
    worker.cycle()
    store.relabel({f"{news.root}/1": ["stadium"], f"{news.root}/2": ["stadium"]})
    worker.cycle()
    assert log.named("refreshed") == []

    due = replace(settings, model=replace(settings.model, refresh=0.0))
    Worker(due, store, log, threading.Event()).cycle()

    assert [event["model"] for event in log.named("refreshed")] == [2]
    assert {match.model for match in store.find(k=100)} == {2}
    assert "stadium" in store.current().classes_.tolist()


def test_a_failing_source_raises_one_alarm(news, desk):
    """After some failures in a row; it is raised again only if the source has worked since."""
    settings, store = desk
    feed = news.answers.pop("/rss.xml")
    log = Log()
    worker = Worker(settings, store, log, threading.Event())

    for _ in range(4):
        worker.cycle()

    (alarm,) = log.named("alarm")
    assert (alarm["kind"], alarm["failures"]) == ("failing", 2)
    news.answers["/rss.xml"] = feed
    worker.cycle()
    del news.answers["/rss.xml"]
    worker.cycle()
    worker.cycle()
    assert len(log.named("alarm")) == 2


def test_a_silent_source(news, desk):
    """A source without a new article for long is silent."""
    settings, store = desk
    log = Log()
    quiet = replace(settings, alarms=replace(settings.alarms, silent=0.0))
    worker = Worker(quiet, store, log, threading.Event())
    worker.cycle()
    worker.cycle()

    assert {alarm["kind"] for alarm in log.named("alarm")} == {"silent"}


def test_an_unavailable_store_is_tried_again(desk, monkeypatch):
    """The worker goes on when the database does not answer."""
    from polytopic.errors import UnavailableError

    settings, store = desk
    log, stopped = Log(), threading.Event()
    worker = Worker(settings, store, log, stopped)
    calls = []

    def cycle():
        calls.append(1)
        if len(calls) == 1:
            raise UnavailableError("locked")
        stopped.set()

    monkeypatch.setattr(worker, "cycle", cycle)
    monkeypatch.setattr("polytopic.desk.worker.PAUSE", 0)

    worker.run()

    assert log.named("store unavailable") == [{"reason": "locked"}]
    assert len(calls) == 2


# Alarms


def test_an_injected_label_is_noticed_early(new_path):
    """A label that begins one day raises an alarm within 40 of its articles, and nothing before."""
    rng, settings = random.Random(5), AlarmSettings()
    with open_store(new_path()) as store:
        store.learn(labelled(1500))
        assert list(find_trends(store, settings)) == []
        seen = None
        for k in range(60):
            others = [
                Document(f"o{k}-{n}", "goal orbit", labels=[rng.choice(["space", "sport"])],
                         time=f"2026-02-01T00:{k:02d}:0{n}")
                for n in range(4)
            ]  # fmt: skip
            new = Document(f"n{k}", "quokka", labels=["quokka"], time=f"2026-02-01T00:{k:02d}:09")
            store.learn([*others, new])
            found = list(find_trends(store, settings))
            if found:
                seen = k + 1
                break

        assert [(alarm.kind, alarm.subject) for alarm in found] == [("growing", "quokka")]
        assert seen <= 40
        assert "expected" in found[0].message


def test_a_vanishing_label(new_path):
    """A label that half of the documents had, and none of the newest, raises an alarm."""
    with open_store(new_path()) as store:
        store.learn(labelled(600))
        store.learn(
            [Document(f"x{k}", "goal", labels=["sport"], time="2026-03-01") for k in range(200)]
        )

        found = {alarm.key for alarm in find_trends(store, AlarmSettings())}

        assert found == {("vanishing", "space"), ("growing", "sport")}


def test_a_steady_stream_raises_no_alarm(new_path):
    """In a simulated year of twenty labels with constant shares, at most one alarm is false."""
    rng, settings, raised = random.Random(9), AlarmSettings(), set()
    labels = [f"label{k}" for k in range(20)]
    weights = [1 / (k + 1) for k in range(20)]
    with open_store(new_path()) as store:
        for day in range(365):
            date = datetime.date(2026, 1, 1) + datetime.timedelta(day)
            own = [rng.choices(labels, weights) for _ in range(12)]
            store.learn(
                [Document(f"{day}-{n}", "w", labels=one, time=date) for n, one in enumerate(own)]
            )
            if day % 5 == 0:
                raised |= {alarm.key for alarm in find_trends(store, settings)}

    assert len(raised) <= 1


def test_strange_words(new_path):
    """If the model knows few words of the newest articles, an alarm says so."""
    with open_store(new_path(), model="nb") as store:
        store.learn(labelled(60))
        store.assign()
        assert list(find_strange_words(store, AlarmSettings())) == []
        store.learn(
            [Document(f"x{k}", "quokka wombat goal", time="2027-01-01") for k in range(200)]
        )
        store.assign()

        (alarm,) = find_strange_words(store, AlarmSettings())

        assert (alarm.kind, alarm.facts["unknown"]) == ("unknown", pytest.approx(0.667, abs=0.01))


def test_delivery(tmp_path):
    """A webhook and a command get the alarm as JSON; what fails is tried again."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # the name that http.server calls
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            """Write nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    copy = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    settings = AlarmSettings(
        webhook=f"http://127.0.0.1:{server.server_port}/",
        command=[sys.executable, "-c", copy, str(tmp_path / "alarm.json")],
    )
    alarm = Alarm("growing", "quokka", "It grows.", {"documents": 7})

    assert deliver(alarm, settings) is None

    assert received == [json.loads((tmp_path / "alarm.json").read_text())] == [alarm.to_dict()]
    server.shutdown()
    server.server_close()
    broken = replace(settings, command=[str(tmp_path / "missing")])
    assert "webhook failed" in deliver(alarm, broken)
    alarms = Alarms(broken)
    assert len(list(alarms.update([alarm]))) == len(list(alarms.update([alarm]))) == 1
    alarms.settings = AlarmSettings()
    assert [reason for _, reason in alarms.update([alarm])] == [None]
    assert list(alarms.update([alarm])) == []


# The command


def start(tmp_path, *options):
    """Start the desk in a process of its own."""
    command = [sys.executable, "-m", "polytopic", "desk", "run", str(tmp_path / "desk.toml")]
    return subprocess.Popen(
        [*command, *options], cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True
    )


def test_the_command_stops_on_a_signal(news, desk, tmp_path):
    """SIGTERM ends it in good order; its log is JSON, one event per line."""
    process, events = start(tmp_path), []
    for line in process.stderr:
        if line.startswith("{"):
            events.append(json.loads(line))
        if events and events[-1]["event"] == "assigned":
            process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    assert [event["event"] for event in events][:4] == [
        "started",
        "ingested",
        "published",
        "assigned",
    ]
    assert events[-1]["event"] == "stopped"
    assert events[1]["level"] == "info"
    assert events[1]["learned"] == 5


def kill(desk, tmp_path, news, moments):
    """Kill the desk at some moments, let it finish, and compare the store."""
    _, store = desk
    for seconds in moments:
        process = start(tmp_path)
        process.stderr.readline()  # it has started
        time.sleep(seconds)
        process.kill()
        process.wait()
        process.stderr.close()

    done = start(tmp_path, "--once")

    assert done.wait(60) == 0
    done.stderr.close()
    assert len(list(store.documents())) == 65
    assert store.count_unassigned() == 0
    assert len(store.history()) == 1
    assert all(len(store.assignments(f"{news.root}/{k}")) == 1 for k in range(5))
    assert store.verify().problems == []


def test_a_killed_desk_continues(news, desk, tmp_path):
    """Nothing is lost and nothing doubled, also not the published model."""
    kill(desk, tmp_path, news, [0.1, 0.4])


@pytest.mark.long
def test_a_desk_killed_often_continues(news, desk, tmp_path):
    """Fifty kills at random moments."""
    rng = random.Random(3)
    kill(desk, tmp_path, news, [rng.uniform(0, 1.5) for _ in range(50)])
