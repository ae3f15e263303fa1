"""CoL, the correlated labeling model of Wang, Huang and Zhu (ICDM 2008).

``estimator`` holds the scikit-learn estimator. It learns two independent parts: ``label_prior``
says which labels occur together, and ``topics`` says which words each label uses. ``training``
learns topics by EM, on the documents of one machine or, through the same methods, of a cluster
(:mod:`polytopic.distributed`). ``prediction`` turns both parts into scores of labels and label
sets, and tunes thresholds on held-out documents. The compiled loops of all of them are in
``kernels``.
"""

from polytopic.models.col.estimator import CoL

__all__ = ["CoL"]
