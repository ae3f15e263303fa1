"""Linear support vector machines, one per label, trained in shared passes over the documents.

``estimator`` is the public class; ``kernels`` holds the compiled descent.
"""

from polytopic.models.svm.estimator import LinearSVM

__all__ = ["LinearSVM"]
