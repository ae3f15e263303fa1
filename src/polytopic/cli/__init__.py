"""The command line: parse arguments, call the library, show results.

Each command is in a module of its name, as ``command``. It imports the library only when it runs,
so that ``polytopic --help`` starts fast. `options`, `documents` (input) and `output` are shared.
"""

import gc
import sys
import warnings
from _thread import interrupt_main
from importlib import import_module
from threading import Timer

import click

from polytopic import __version__
from polytopic.cli.output import OUTPUT, prepare_streams

COMMANDS = (
    "train",
    "suggest",
    "explain",
    "eval",
    "compare",
    "audit",
    "labels",
    "map",
    "select",
    "ingest",
    "desk",
    "store",
    "serve",
    "token",
    "info",
    "compile",
)


INTERRUPTED = 130  # as in shells: 128 plus the number of the signal
# New objects after which garbage is collected. The default of Python, 700, would visit the objects
# of imported libraries and of the compiler hundreds of times before a command begins its work.
OBJECTS_PER_COLLECTION = 200_000


class Commands(click.Group):
    """The commands, each imported when needed; every failure is one sentence on stderr."""

    def list_commands(self, context):
        """Return the names in the order in which users need them."""
        return list(COMMANDS)

    def get_command(self, context, name):
        """Import a command."""
        return import_module(f"polytopic.cli.{name}").command if name in COMMANDS else None

    def main(self, *arguments, **more):
        """Run the program with standard streams that report lost results."""
        gc.set_threshold(OBJECTS_PER_COLLECTION)
        prepare_streams()
        sys.unraisablehook = _interrupt_again
        try:
            return super().main(*arguments, **more)
        except OSError as error:  # while the help is written
            click.ClickException(_sentence(error)).show()
            sys.exit(1)

    def invoke(self, context):
        """Run a command; exit with 1 if it fails, with 130 if it is interrupted."""
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:  # click would exit with 1
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            if isinstance(error, BrokenPipeError) and error.filename == OUTPUT:
                raise click.exceptions.Exit(1) from None  # nobody reads the reason
            if context.params["debug"]:
                raise
            raise click.ClickException(_sentence(error)) from error


def _interrupt_again(unraisable):
    """Repeat a Ctrl+C that was pressed in a callback of the compiler, where it is lost."""
    if unraisable.exc_type is KeyboardInterrupt:
        Timer(0.1, interrupt_main).start()  # when the callback has returned
    else:
        sys.__unraisablehook__(unraisable)


def _sentence(error):
    """Return the message of a failure: the library's own, or that of an unexpected error."""
    from polytopic.errors import PolytopicError

    if isinstance(error, PolytopicError | ValueError | TypeError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        if error.filename == OUTPUT:
            return f"{OUTPUT} cannot be written: {error.strerror.lower()}."
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "not enough memory."
    return f"unexpected {type(error).__name__}: {error}. Run polytopic --debug for details."


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="polytopic")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
def main(debug):
    """Label texts with several topics at once, and explain why.

    \b
      polytopic train news.jsonl --to news.model     learn from labelled documents
      polytopic suggest news.model fresh.jsonl       label new documents
      polytopic explain news.model "A text."         see which words matter

    Documents are JSON lines with "text" and "labels" (or "counts" for bags of words), CSV, TSV,
    SVMlight or plain lines, gzipped or not; "-" is standard input. Results go to standard output,
    as a table on a terminal and as JSON lines otherwise. Messages go to standard error.
    """  # noqa: D301  (click reads \b)
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
