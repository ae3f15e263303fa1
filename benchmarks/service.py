"""The service under load on this machine, with Reuters.

load: 64 clients request labels for one document at a time, and one request in a hundred learns;
clients: the rates of one and of eight clients that only request labels; lines: all test documents
in one stream of lines, compared with the library in one process; --memory: as load, for ten
minutes.
"""

import argparse
import asyncio
import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import markdown, split_documents
from load import Load, request

from polytopic import Store

BATCH = 256  # documents that the library labels at once, as the service does
PARTS = ("load", "clients", "lines")


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(path):
    """Serve a store in its own process; yield its address and the process."""
    port = free_port()
    command = [sys.executable, "-m", "polytopic", "serve", str(path), "--port", str(port)]
    process = subprocess.Popen(command)
    try:
        while not is_ready(port):
            if process.poll() is not None:
                raise SystemExit("the service did not start.")
            time.sleep(0.1)
        yield f"127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait()


def is_ready(port):
    """Return whether a service can answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready"):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def resident_memory(process):
    """Return the memory that a process has, in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def run(coroutine):
    """Run a coroutine, on the faster event loop if it is installed."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


async def watched(load, clients, seconds, process, looks):
    """Run a load; return its seconds, and the memory of the service at several moments."""
    running = asyncio.create_task(load.run(clients, seconds))
    memory = []
    for _ in range(looks):
        memory.append(resident_memory(process))
        await asyncio.wait([running], timeout=seconds / (looks - 1))
    return await running, memory


def under_load(host, token, documents, process, path, arguments, looks=3):
    """Print how fast a load was answered, and whether all that was learned is stored."""
    run(Load(host, token, documents).run(arguments.clients, 3))  # warm
    load = Load(host, token, documents, learn=arguments.learn)
    spent, memory = run(watched(load, arguments.clients, arguments.seconds, process, looks))
    with Store(path) as store:
        lost = set(load.learned) - {document.id for document in store.documents()}
    rows = []
    for route in ("suggest", "learn"):
        times = 1e3 * np.array(load.seconds[route])
        if times.size:
            p50, p99 = np.percentile(times, [50, 99])
            rate, most = f"{times.size / spent:,.0f}", f"{times.max():.0f}"
            rows.append((route, rate, f"{p50:.1f}", f"{p99:.1f}", most, f"{p99 / p50:.1f}"))
    markdown(["route", "a second", "p50, ms", "p99, ms", "longest, ms", "p99 / p50"], rows)
    print(f"\nErrors: {len(load.errors)}; learned: {len(load.learned)}; lost: {len(lost)}")
    for error in load.errors[:3]:
        print(*error)
    print("Memory, MB:", ", ".join(f"{m:.0f}" for m in memory), flush=True)


def by_clients(host, token, documents, seconds):
    """Print the rates of one client and of eight."""
    rows = []
    for clients in (1, 8):
        load = Load(host, token, documents)
        spent = run(load.run(clients, seconds))
        p50, p99 = np.percentile(1e3 * np.array(load.seconds["suggest"]), [50, 99])
        rate = len(load.seconds["suggest"]) / spent
        rows.append((clients, f"{rate:,.0f}", f"{p50:.1f}", f"{p99:.1f}", len(load.errors)))
    markdown(["clients", "a second", "p50, ms", "p99, ms", "errors"], rows)


async def stream(host, documents):
    """Label documents in one stream of lines; return the answers."""
    lines = (json.dumps({"id": d.id, "text": d.text}) + "\n" for d in documents)
    body = "".join(lines).encode()
    reader, writer = await asyncio.open_connection(*host.split(":"), limit=1 << 24)
    begin = time.perf_counter()
    kind = {"kind": "application/x-ndjson", "Connection": "close"}
    writer.write(request(host, "/v1/suggest", body, **kind))
    answer = await reader.read()
    spent = time.perf_counter() - begin
    writer.close()
    return spent, [line for line in answer.split(b"\n") if line.startswith(b"{")]


def lines(host, path, documents, repeats):
    """Print the rate of a stream next to the library's."""
    with Store(path) as store:
        labeler = store.labeler()
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        own = [
            found
            for k in range(0, len(documents), BATCH)
            for found in labeler.suggest(documents[k : k + BATCH])
        ]
        library = time.perf_counter() - begin
        spent, answers = run(stream(host, documents))
        if not len(answers) == len(own) == len(documents):
            raise SystemExit(f"{len(answers)} answers to {len(documents)} documents.")
        times.append((len(documents) / library, len(documents) / spent))
    library, service = np.median(times[1:], axis=0)
    ratio = np.median([two / one for one, two in times[1:]])
    header = ["library, documents a second", "service", "ratio"]
    markdown(header, [(f"{library:,.0f}", f"{service:,.0f}", f"{ratio:.2f}")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--memory", action="store_true", help="load the service for ten minutes")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--learn", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    train, test = split_documents("reuters21578")
    token = secrets.token_hex()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Store(path) as store:
            store.learn(train)
            store.tokens.create("writer", "write", token)
        with serving(path) as (host, process):
            for part in ["memory"] if arguments.memory else arguments.parts or PARTS:
                print(f"\n## {part}\n", flush=True)
                if part == "load":
                    under_load(host, token, test, process, path, arguments)
                elif part == "memory":
                    arguments.seconds = 600
                    under_load(host, token, test, process, path, arguments, looks=11)
                elif part == "clients":
                    by_clients(host, token, test, arguments.seconds / 3)
                else:
                    lines(host, path, test, arguments.repeats)
