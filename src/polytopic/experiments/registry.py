"""All methods by name."""

from polytopic.experiments.baselines import BASELINES
from polytopic.experiments.own import OWN

METHODS = {method.name: method for method in (*OWN, *BASELINES)}
