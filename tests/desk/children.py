"""A process that ingests and assigns until it is killed; its arguments: a store and sources."""

import sys

from polytopic.desk import ingest
from polytopic.store import Store
from tests.desk.conftest import FAST

if __name__ == "__main__":
    with Store(sys.argv[1], keep_texts=True) as opened:
        print("ready", flush=True)
        while True:
            ingest(sys.argv[2:], opened, limits=FAST)
            opened.assign()
            print("done", flush=True)
