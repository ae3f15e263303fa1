"""A method of `make bench` in its own process: learns from texts, or labels them.

Usage: bench_methods.py METHOD learn|label FOLDER CORPUS

FOLDER holds CORPUS.learn.json and CORPUS.label.json, which are lists of texts and of their labels.
The last line that is written is JSON: seconds, what was loaded before, memory.
"""
# ruff: noqa: D102, S301

import json
import pickle
import sys
import time
from pathlib import Path

REPEATS = 3
LONG = 10  # seconds after which labelling is not repeated
PROBABLE = 0.5


class Scikit:
    """CountVectorizer, TfidfTransformer and one LinearSVC for each label."""

    file = "sklearn.pickle"

    def load_library(self):
        from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MultiLabelBinarizer
        from sklearn.svm import LinearSVC

        self.names = MultiLabelBinarizer(sparse_output=True)
        self.pipeline = make_pipeline(
            CountVectorizer(), TfidfTransformer(), OneVsRestClassifier(LinearSVC())
        )

    def learn(self, texts, labels, path):
        self.pipeline.fit(texts, self.names.fit_transform(labels))
        path.write_bytes(pickle.dumps((self.names, self.pipeline)))

    def load(self, path):
        self.names, self.pipeline = pickle.loads(path.read_bytes())

    def label(self, texts):
        return self.names.inverse_transform(self.pipeline.predict(texts))


class FastText:
    """fastText, one-vs-all, on lower-case texts."""

    file = "fasttext.bin"

    def load_library(self):
        import fasttext

        self.library = fasttext

    def learn(self, texts, labels, path):
        lines = path.with_suffix(".txt")
        with lines.open("w", encoding="utf-8") as file:
            for line, own in zip(self.lines(texts), labels, strict=True):
                marks = "".join(f"__label__{name.replace(' ', '_')} " for name in own)
                file.write(f"{marks}{line}\n")
        model = self.library.train_supervised(
            str(lines), loss="ova", lr=0.5, epoch=25, thread=1, verbose=0
        )
        model.save_model(str(path))
        lines.unlink()

    def lines(self, texts):
        return [" ".join(text.lower().split()) for text in texts]

    def load(self, path):
        self.model = self.library.load_model(str(path))

    def label(self, texts):
        lines = self.lines(texts)
        found, _ = self.model.predict(lines, k=-1, threshold=PROBABLE)
        none = [k for k, own in enumerate(found) if not own]
        best, _ = self.model.predict([lines[k] for k in none], k=1)
        for k, own in zip(none, best, strict=True):
            found[k] = own
        return [[name.removeprefix("__label__") for name in own] for own in found]


class OnWeights:
    """A learner of weights: words are counted and weighed by scikit-learn."""

    def load_library(self):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.words = TfidfVectorizer()
        self.load_learner()

    def learn(self, texts, labels, path):
        path.mkdir(exist_ok=True)
        X = self.words.fit_transform(texts)
        names = sorted({name for own in labels for name in own})
        (path / "words.pickle").write_bytes(pickle.dumps((self.words, names)))
        number = {name: k for k, name in enumerate(names)}
        self.learn_weights(X, [[number[name] for name in own] for own in labels], path)

    def load(self, path):
        self.words, self.names = pickle.loads((path / "words.pickle").read_bytes())
        self.load_weights(path)

    def label(self, texts):
        answers = []
        for pairs in self.scores(self.words.transform(texts)):
            own = [label for label, score in pairs if score >= PROBABLE] or [pairs[0][0]]
            answers.append([self.names[label] for label in own])
        return answers


class Omikuji(OnWeights):
    """Omikuji's label trees, as in Parabel."""

    file = "omikuji"

    def load_learner(self):
        import omikuji

        self.library = omikuji

    def learn_weights(self, X, labels, path):
        lines = path / "learn.txt"
        with lines.open("w", encoding="utf-8") as file:
            file.write(f"{X.shape[0]} {X.shape[1]} {1 + max(map(max, labels))}\n")
            for own, row in zip(labels, pairs_of(X), strict=True):
                words = " ".join(f"{word}:{weight:.6g}" for word, weight in row)
                file.write(f"{','.join(map(str, own))} {words}\n")
        hyper = self.library.Model.default_hyper_param()
        model = self.library.Model.train_on_data(str(lines), hyper, 1)
        lines.unlink()
        model.save(str(path / "model"))

    def load_weights(self, path):
        self.model = self.library.Model.load(str(path / "model"))
        self.model.init_prediction_thread_pool(1)

    def scores(self, X):
        return (self.model.predict(row, top_k=10) or [(0, 0.0)] for row in pairs_of(X))


class NapkinXC(OnWeights):
    """napkinXC's probabilistic label tree."""

    file = "napkinxc"

    def load_learner(self):
        from napkinxc.models import PLT

        self.plt = PLT

    def learn_weights(self, X, labels, path):
        self.plt(str(path / "model"), threads=1, seed=0, verbose=False).fit(X, labels)

    def load_weights(self, path):
        self.model = self.plt(str(path / "model"), threads=1, verbose=False)
        self.model.load()

    def scores(self, X):
        return (row or [(0, 0.0)] for row in self.model.predict_proba(X, top_k=10))


class Tomotopy:
    """tomotopy's partially labelled LDA, on the words that CountVectorizer finds."""

    file = "tomotopy.bin"

    def load_library(self):
        import tomotopy
        from sklearn.feature_extraction.text import CountVectorizer

        self.library, self.words = tomotopy, CountVectorizer().build_analyzer()

    def learn(self, texts, labels, path):
        model = self.library.PLDAModel(latent_topics=1, topics_per_label=1, seed=0)
        for text, own in zip(texts, labels, strict=True):
            words = self.words(text)
            if words:
                model.add_doc(words, labels=own)
        model.train(100, workers=1)
        model.save(str(path), full=False)

    def load(self, path):
        self.model = self.library.PLDAModel.load(str(path))
        self.names = list(self.model.topic_label_dict)

    def label(self, texts):
        documents = [self.model.make_doc(self.words(text) or ["the"]) for text in texts]
        shares, _ = self.model.infer(documents, 50, workers=1)
        answers = []
        for row in shares:
            own = row[: len(self.names)]
            answers.append([self.names[k] for k in range(len(own)) if own[k] >= max(own) / 2])
        return answers


class Ours:
    """A `Labeler`."""

    def __init__(self, name, **parameters):
        self.parameters = parameters
        self.file = f"{name}.polytopic"

    def load_library(self):
        from polytopic import Labeler, load

        self.labeler, self.read = Labeler, load

    def learn(self, texts, labels, path):
        labeler = self.labeler(**self.parameters).fit(texts, labels)
        labeler.save(path)
        return lambda: labeler.save(path.with_suffix(".small"), counts=False)

    def load(self, path):
        self.fitted = self.read(path)

    def label(self, texts):
        return self.fitted.predict(texts)


METHODS = {
    "polytopic, default": lambda: Ours("default"),
    "polytopic, fast": lambda: Ours("fast", quality="fast"),
    "polytopic, best": lambda: Ours("best", quality="best"),
    "polytopic, pmm1": lambda: Ours("pmm1", model="pmm1"),
    "polytopic, nb": lambda: Ours("nb", model="nb"),
    "scikit-learn": Scikit,
    "fastText": FastText,
    "Omikuji": Omikuji,
    "napkinXC": NapkinXC,
    "tomotopy": Tomotopy,
}


def pairs_of(X):
    """Yield the words of documents with their weights."""
    X.sort_indices()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))


def peak():
    """Return the peak memory of this process in MB.

    (The resource usage that Unix reports includes that of the parent process before the fork.)
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise SystemExit("The peak of memory is reported by Linux only.")


def time_call(call):
    """Return the result of a call, and its seconds by the clock and by the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def size_of(path):
    """Return the size of a file, or of all files in a folder, in MB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def learn(method, folder, corpus):
    """Learn texts and save what was learned."""
    texts, labels = json.loads((folder / f"{corpus}.learn.json").read_text("utf-8"))
    before = peak()
    path = folder / f"{corpus}.{method.file}"
    rest, wall, cpu = time_call(lambda: method.learn(texts, labels, path))
    found = {"wall": wall, "cpu": cpu, "peak": peak(), "before": before, "size": size_of(path)}
    if rest is not None:
        rest()
        found["small"] = size_of(path.with_suffix(".small"))
    return found


def label(method, folder, corpus):
    """Label texts with the saved model, and store the answers."""
    texts = json.loads((folder / f"{corpus}.label.json").read_text("utf-8"))[0]
    path = folder / f"{corpus}.{method.file}"
    _, load_wall, _ = time_call(lambda: method.load(path))
    runs = [time_call(lambda: method.label(texts))]
    while len(runs) < REPEATS and runs[0][1] < LONG:
        runs.append(time_call(lambda: method.label(texts)))
    answers = [list(own) for own in runs[-1][0]]
    (folder / f"{corpus}.{method.file}.answers.json").write_text(json.dumps(answers), "utf-8")
    return {
        "first": runs[0][1],
        "wall": sorted(run[1] for run in runs)[len(runs) // 2],
        "cpu": sorted(run[2] for run in runs)[len(runs) // 2],
        "load": load_wall,
        "peak": peak(),
    }


if __name__ == "__main__":
    name, what, folder, corpus = sys.argv[1:]
    method = METHODS[name]()
    _, start, _ = time_call(method.load_library)
    found = {"learn": learn, "label": label}[what](method, Path(folder), corpus)
    print(json.dumps(found | {"start": start}))
