"""``python -m polytopic`` is the command ``polytopic``."""

from polytopic.cli import main

main(prog_name="polytopic")
