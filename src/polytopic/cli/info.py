"""The command ``polytopic info``."""

from pathlib import Path

import click

from polytopic.cli.output import echo_json, on_terminal, table
from polytopic.files import is_database


@click.command()
@click.argument("model")
def command(model):
    """Show the type, parameters, labels, terms and training of MODEL, a model file or a store."""
    facts = _store_facts(model) if is_database(model) else _model_facts(model)
    if on_terminal():
        table("", ["", ""], [(name, _to_text(value)) for name, value in facts.items()])
    else:
        echo_json(facts)


def _store_facts(url):
    from polytopic.store import Store

    with Store(url, create=False) as store:
        return store.info()


def _model_facts(model):
    from polytopic.modelfile import read_model

    manifest, _ = read_model(model)
    return {
        "file": str(model),
        "bytes": Path(model).stat().st_size,
        "format_version": manifest["format_version"],
        "polytopic_version": manifest["polytopic_version"],
        "model": manifest["model"]["name"],
        "parameters": manifest["model"]["parameters"],
        "chosen": manifest["model"]["chosen"],
        "rule": _rule(manifest["settings"]["rule"]),
        "weights": manifest["settings"].get("weights"),
        "language": manifest["analyzer"]["language"],
        "labels": len(manifest["labels"]),
        "terms": len(manifest["vocabulary"]),
        "training": manifest["training"],
        "can_learn": manifest["counts"] is not None and manifest.get("documents") is not False,
    }


def _rule(rule):
    if rule is None:
        return None
    parameters = {name: value for name, value in rule["parameters"].items() if name != "tree"}
    return f"{rule['name']}({', '.join(f'{name}={value}' for name, value in parameters.items())})"


def _to_text(value):
    if isinstance(value, dict):
        return ", ".join(
            name if isinstance(item, list | dict) else f"{name} {item}"  # too long to show
            for name, item in value.items()
        )
    return value if value is not None else "none"
