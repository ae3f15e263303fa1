"""An Annif project that trains and suggests on request.

It runs in Annif's environment, imports nothing of polytopic, and reads one JSON object per line:
``{"learn": texts, "labels": numbers, "n_labels": n, "settings": settings}``, then any number of
``{"suggest": texts, "to": file}``. It answers each with a line that holds the CPU
seconds used and the memory added, in MB, or a ``failure``.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

TRIES = 20  # training of fastText fails now and then
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


class Project:
    """A project in a folder of its own."""

    def __init__(self, folder):
        from annif.analyzer import register_analyzer

        self.folder = Path(folder)
        register_analyzer(Words)

    def learn(self, texts, labels, n_labels, settings):
        """Make a vocabulary and a project, and train it."""
        from annif.corpus import Document, DocumentList, SubjectSet
        from annif.registry import AnnifRegistry
        from annif.vocab import VocabFileTSV

        lines = {"name": "p", "language": "en", "analyzer": "words", "vocab": "labels", **settings}
        config, names = self.folder / "projects.cfg", self.folder / "labels.tsv"
        config.write_text("[p]\n" + "".join(f"{name}={v}\n" for name, v in lines.items()))
        names.write_text("".join(f"<http://example.org/{k}>\tl{k}\n" for k in range(n_labels)))
        registry = AnnifRegistry(str(config), str(self.folder), False)
        self.project = registry.get_project("p")
        self.project.vocab.load_vocabulary(VocabFileTSV(str(names), "en"))
        if len(self.project.subjects) != n_labels:
            raise RuntimeError(f"Annif knows {len(self.project.subjects)} of {n_labels} labels.")
        if self.project.backend is None:
            name = settings["backend"]
            raise RuntimeError(f"no back end {name!r}; pip install 'annif[{name}]' if it is one.")
        pairs = zip(texts, labels, strict=True)
        corpus = DocumentList([Document(text, SubjectSet(own)) for text, own in pairs])
        for tries in range(TRIES):
            try:
                self.project.train(corpus, jobs=1)
                break
            except RuntimeError as error:  # of fastText
                if "Encountered NaN" not in str(error) or tries == TRIES - 1:
                    raise

    def suggest(self, texts, to):
        """Write the scores of labels as a sparse matrix."""
        from annif.corpus import Document
        from scipy import sparse

        blocks = []
        for start in range(0, len(texts), 32):  # Annif's batch size
            documents = [Document(text) for text in texts[start : start + 32]]
            blocks.append(self.project.suggest(documents).array)
        sparse.save_npz(to, sparse.csr_matrix(sparse.vstack(blocks)))


class Words:
    """An analyzer for texts whose words are separated by spaces."""

    name = "words"

    def __init__(self, param=None):
        pass

    @staticmethod
    def is_available():
        """Return whether it can be used."""
        return True

    def tokenize_words(self, text, filter=True):
        """Return the words."""
        return text.split()

    def tokenize_sentences(self, text):
        """Return the text, as one sentence."""
        return [text]


def main():
    """Answer requests until there are no more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    sys.path.pop(0)  # this folder, whose modules are not for this environment
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps what libraries print out of the answers
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)
        import annif.project  # noqa: F401  # imports are not timed

        for line in sys.stdin:
            answers.write(json.dumps(answer(project, json.loads(line))) + "\n")
            answers.flush()


def answer(project, request):
    """Serve a request; return its cost or why it failed."""
    start, before = time.process_time(), peak(forget=True)
    try:
        if "learn" in request:
            project.learn(
                request["learn"], request["labels"], request["n_labels"], request["settings"]
            )
        else:
            project.suggest(request["suggest"], request["to"])
    except Exception as error:  # the other program reports it
        return {"failure": f"{type(error).__name__}: {error}"}
    return {"seconds": time.process_time() - start, "memory_mb": peak() - before}


def peak(*, forget=False):
    """Return the peak of memory in MB; with ``forget``, reset it to the present use first."""
    try:
        if forget:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    except OSError:  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
