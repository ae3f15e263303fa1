"""The settings of a desk: one TOML file, and environment variables that replace single values."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from polytopic.desk.addresses import is_web_address
from polytopic.desk.errors import AcquisitionError
from polytopic.desk.fetching import FetchLimits
from polytopic.desk.label_sources import SOURCES, LabelMapping
from polytopic.labeler.tuned_rule import check_rule_name
from polytopic.models.registry import find_model

PREFIX = "POLYTOPIC_DESK_"
DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([smhd]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LEVELS = ("debug", "info", "warning", "error")


class Duration(float):
    """A number of seconds; in files also with a unit: 30s, 10m, 2h, 1d."""


DAY, TEN_MINUTES = Duration(SECONDS["d"]), Duration(10 * SECONDS["m"])


@dataclass(frozen=True)
class DeskSettings:
    """The section ``[desk]``: the store, and how events are logged."""

    store: str
    log: str = "text"
    level: str = "info"


@dataclass(frozen=True)
class ModelSettings:
    """The section ``[model]``: what is published, and how often it is fitted again."""

    name: str | None = None
    rule: str | None = None
    refresh: Duration = DAY
    min_documents: int = 20


@dataclass(frozen=True)
class SourceSettings:
    """A section ``[[sources]]``: an address or a file, and how often it is read."""

    address: str
    every: Duration = TEN_MINUTES
    labels_from: str | None = None
    map: str | None = None

    @property
    def mapping(self) -> LabelMapping | None:
        """The labels of categories or sections."""
        if self.labels_from is None or self.map is None:
            return None
        return LabelMapping.from_file(self.labels_from, self.map)


@dataclass(frozen=True)
class AlarmSettings:
    """The section ``[alarms]``: what raises an alarm, and where it is sent.

    Attributes
    ----------
    webhook : str or None
        An address that gets each alarm as JSON by POST.
    command : list of str
        A program with its arguments that gets each alarm as JSON on standard input.
    silent : Duration
        Seconds after which a source without a new article is silent.
    failures : int
        How often in a row a source must fail.
    unknown : float
        The share of unknown words in the newest articles from which on they are strange.
    window, reference : int
        Labels of this many newest documents are compared with this many before them.
    significance : float
        How improbable the number of documents of a label must be.
    """

    webhook: str | None = None
    command: list[str] = field(default_factory=list)
    silent: Duration = DAY
    failures: int = 3
    unknown: float = 0.5
    window: int = 200
    reference: int = 2000
    significance: float = 1e-7


@dataclass(frozen=True)
class Settings:
    """All settings of a desk."""

    desk: DeskSettings
    sources: tuple[SourceSettings, ...]
    model: ModelSettings
    fetch: FetchLimits
    alarms: AlarmSettings


def read_settings(path: str | Path, environment: Mapping[str, str]) -> Settings:
    """Read a file; ``POLYTOPIC_DESK_MODEL_RULE``, say, replaces ``rule`` in ``[model]``.

    Paths in the file are relative to its folder.
    """
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise AcquisitionError(f"{str(path)!r} cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AcquisitionError(f"{str(path)!r} is not valid TOML ({error}).") from error
    kinds = {
        "desk": DeskSettings,
        "model": ModelSettings,
        "fetch": FetchLimits,
        "alarms": AlarmSettings,
    }
    unknown = content.keys() - kinds.keys() - {"sources"}
    if unknown:
        raise AcquisitionError(f"{str(path)!r} has the unknown section [{min(unknown)}].")
    try:
        sections = {
            name: _section(name, kind, content.get(name, {}), environment)
            for name, kind in kinds.items()
        }
        entries = content.get("sources", [])
        if not isinstance(entries, list) or not entries:
            raise ValueError("[[sources]] is missing, must name at least one source")
        sources = tuple(_section("sources", SourceSettings, entry, {}) for entry in entries)
        settings = _relative_to(Path(path).absolute().parent, Settings(sources=sources, **sections))
        _check(settings)
    except (TypeError, ValueError) as error:
        raise AcquisitionError(f"{str(path)!r}: {str(error).rstrip('.')}.") from error
    return settings


def _section(name: str, kind: type, values: Any, environment: Mapping[str, str]) -> Any:
    """Return a section as a record of this kind."""
    if not isinstance(values, dict):
        raise ValueError(f"[{name}] must be a table of settings")
    known = {one.name: one for one in fields(kind)}
    hints = get_type_hints(kind)
    values = dict(values)
    for setting in known:
        variable = f"{PREFIX}{name}_{setting}".upper()
        if variable in environment:
            values[setting] = _parse(environment[variable], hints[setting])
    for setting, value in values.items():
        if setting not in known:
            raise ValueError(f"[{name}] has the unknown setting {setting!r}")
        values[setting] = _checked(f"[{name}] {setting}", value, hints[setting])
    for setting, one in known.items():
        is_required = one.default is MISSING and one.default_factory is MISSING
        if is_required and setting not in values:
            raise ValueError(f"[{name}] has no {setting!r}")
    return kind(**values)


def _parse(text: str, hint: Any) -> Any:
    """Return the value of an environment variable: JSON unless a text is expected."""
    if hint in (str, str | None, Duration):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _checked(place: str, value: Any, hint: Any) -> Any:
    """Return a value of the type that a setting has."""
    if hint is Duration:
        match = DURATION.fullmatch(str(value))
        if match is None or isinstance(value, bool):
            raise ValueError(f"{place} == {value!r}, must be like 30s, 10m, 2h or 1d")
        return Duration(float(match[1]) * SECONDS[match[2]])
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint == list[str]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ValueError(f"{place} == {value!r}, must be a list of strings")
        return value
    kind = str if hint == str | None else hint
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ValueError(f"{place} == {value!r}, must be of type {kind.__name__}")
    return value


def _relative_to(folder: Path, settings: Settings) -> Settings:
    """Return settings whose files are found from any folder."""

    def place(name: str) -> str:
        return name if is_web_address(name) else str(folder / name)

    sources = tuple(
        replace(one, address=place(one.address), map=one.map and place(one.map))
        for one in settings.sources
    )
    desk = replace(settings.desk, store=place(settings.desk.store))
    return replace(settings, desk=desk, sources=sources)


def _check(settings: Settings) -> None:
    """Raise unless values are among those that are allowed."""
    if settings.desk.log not in ("text", "json"):
        raise ValueError(f"[desk] log == {settings.desk.log!r}, must be text or json")
    if settings.desk.level not in LEVELS:
        level = settings.desk.level
        raise ValueError(f"[desk] level == {level!r}, must be one of {', '.join(LEVELS)}")
    if settings.model.name is not None:
        find_model(settings.model.name)
    if settings.model.rule is not None:
        check_rule_name(settings.model.rule)
    for source in settings.sources:
        if (source.labels_from is None) != (source.map is None):
            raise ValueError(f"{source.address!r}: labels_from and map belong together")
        if source.labels_from is not None and source.labels_from not in SOURCES:
            allowed = " or ".join(SOURCES)
            raise ValueError(f"labels_from == {source.labels_from!r}, must be {allowed}")
