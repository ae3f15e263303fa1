"""Tests of the news desk."""
