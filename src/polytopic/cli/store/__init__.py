"""polytopic store: a command for each thing to do with a store, in a module of its name."""

from importlib import import_module

import click

COMMANDS = (
    "init",
    "learn",
    "relabel",
    "forget",
    "counts",
    "diff",
    "drift",
    "verify",
    "publish",
    "refresh",
    "rollback",
    "history",
    "merge",
    "export",
    "import",
)


class StoreCommands(click.Group):
    """The commands on stores, each loaded when it is needed."""

    def list_commands(self, context):
        """Return the names in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, context, name):
        """Load a command."""
        module = {"import": "import_"}.get(name, name)  # a word of Python
        return import_module(f"{__name__}.{module}").command if name in COMMANDS else None


@click.command(name="store", cls=StoreCommands)
def command():
    """Keep documents, counts and models in a database, to correct and to forget.

    \b
      polytopic store init news.db                   make a store
      polytopic store learn news.db news.jsonl       learn documents, or corrections of them
      polytopic store forget news.db 17 23           forget documents without a trace
      polytopic suggest news.db fresh.jsonl          label new ones with all that was learned

    STORE is a file, or the URL of a PostgreSQL database: postgresql+psycopg://user@host/name.
    Every change gives a receipt: what changed, and the store's revision and digest before and
    after.
    """  # noqa: D301  (click reads \b)
