"""Methods that fail, each in its own way."""

import os
import time

from polytopic.experiments import Method


def _raise(train, settings, seed):
    raise RuntimeError("no luck")


def _die(train, settings, seed):
    os._exit(7)


def _sleep(train, settings, seed):
    time.sleep(600)


FAILING = [
    Method("raises", "Raises", _raise),
    Method("dies", "Dies", _die),
    Method("sleeps", "Sleeps", _sleep),
]
