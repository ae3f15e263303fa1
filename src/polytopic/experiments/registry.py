"""All methods by their names."""

from polytopic.experiments.annif import ANNIF
from polytopic.experiments.ours import OURS
from polytopic.experiments.peers import PEERS
from polytopic.experiments.rivals import RIVALS

METHODS = {method.name: method for method in (*OURS, *RIVALS, *PEERS, *ANNIF)}
