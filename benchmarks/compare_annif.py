r"""``polytopic compare``, with Annif's back ends among the methods.

Install Annif as ``annif_methods.py`` says, then for instance::

    POLYTOPIC_ANNIF=annif/bin/python python benchmarks/compare_annif.py news.jsonl \
        --models mml,svm-threshold,annif-omikuji --to report.html

All options of ``polytopic compare`` apply; ``--list CORPUS`` lists the methods.
"""

import sys

from annif_methods import ANNIF

from polytopic.cli import main
from polytopic.experiments import register_method

for method in ANNIF:
    register_method(method)

if __name__ == "__main__":
    main(["compare", *sys.argv[1:]], prog_name="compare_annif.py")
