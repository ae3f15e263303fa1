"""A small corpus whose labels have different words."""

from polytopic import Labeler

TEXTS = [
    "The striker scored a late goal and the match was won.",
    "A goal in extra time decided the football match.",
    "The rover landed on Mars and sent pictures from orbit.",
    "Engineers launched a satellite into orbit around Mars.",
    "A football was kicked in orbit: the goal of the rover.",
    "The orchestra played a symphony in the concert hall.",
    "A choir and an orchestra gave a concert of songs.",
    "The film director won a prize at the festival.",
    "Actors and a director spoke about the film.",
]
LABELS = [
    ["sport"],
    ["sport"],
    ["space"],
    ["space"],
    ["space", "sport"],
    ["music"],
    ["music"],
    ["film"],
    ["film"],
]


def fitted(model="pmm1", **settings):
    """Return a labeler of the texts."""
    return Labeler(model, **settings).fit(TEXTS, LABELS)
