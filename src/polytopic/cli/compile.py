"""The command ``polytopic compile``."""

import subprocess
import sys
import time

import click

from polytopic.models.registry import DEFAULT_QUALITY, create_model, find_quality, model_names

GROUPS = model_names("counts"), model_names("documents")  # compiled in two processes
DOCUMENTS = 60


@click.command("compile")
@click.argument("models", nargs=-1, type=click.Choice(model_names()))
def command(models):
    """Compile MODELS, all by default, so that later commands start fast.

    Compiled code is cached next to the package or, if that is read-only, in the user's cache, until
    polytopic is updated. Without this command, each model is compiled when it is first used.
    """
    models = models or model_names()
    groups = [[name for name in group if name in models] for group in GROUPS]
    groups = [group for group in groups if group]
    if len(groups) == 1:
        for name in groups[0]:
            begin = time.perf_counter()
            use(name)
            click.echo(f"{name}: {time.perf_counter() - begin:.1f} s", err=True)
        return
    program = [sys.executable, "-m", "polytopic", "compile"]
    parts: list[subprocess.Popen] = []
    try:
        for group in groups:  # new sessions: Ctrl+C reaches only this process, which ends them
            command = [*program, *group]
            parts.append(subprocess.Popen(command, start_new_session=True))  # noqa: S603
        codes = [part.wait() for part in parts]
    finally:
        for part in parts:
            part.terminate()
    if any(codes):
        raise click.ClickException("not all models could be compiled.")


def use(name):
    """Use the main functions of a model on a part of the sample."""
    from polytopic import Labeler
    from polytopic.corpus import load_sample

    documents = load_sample()[:DOCUMENTS]
    texts = [document.text for document in documents]
    default, parameters = find_quality(DEFAULT_QUALITY)
    model = create_model(name, **(parameters if name == default else {}))
    labeler = Labeler(model).fit(documents)
    (best, *_), *_ = labeler.suggest(texts)
    other_labels = [label for label in labeler.classes_.tolist() if label != best.label]
    labeler.predict(texts)
    labeler.predict_proba(texts)
    labeler.explain(texts[0], [best.label], why_not=other_labels[0])
