"""The settings of a desk are checked, and name what is wrong."""

import pytest

from polytopic.desk.errors import AcquisitionError
from polytopic.desk.settings import read_settings

MINIMAL = '[desk]\nstore = "news.db"\n[[sources]]\naddress = "https://example.org/rss.xml"\n'


def read(tmp_path, text, **environment):
    """Return the settings in a file."""
    (tmp_path / "desk.toml").write_text(text)
    return read_settings(tmp_path / "desk.toml", environment)


def test_defaults(tmp_path):
    """A store and a source are enough; files are relative to the folder of the settings."""
    settings = read(tmp_path, MINIMAL)

    assert settings.desk.store == str(tmp_path / "news.db")
    (source,) = settings.sources
    assert (source.address, source.every, source.mapping) == (
        "https://example.org/rss.xml",
        600,
        None,
    )
    assert (settings.model.rule, settings.model.refresh) == (None, 86400)
    assert settings.fetch.allow_private is False


def test_all_sections(tmp_path):
    """Durations have units, and mappings are read."""
    (tmp_path / "map.csv").write_text("Sport,sport\n")
    settings = read(
        tmp_path,
        '[desk]\nstore = "postgresql+psycopg://x@y/z"\nlog = "json"\nlevel = "debug"\n'
        '[model]\nname = "nb"\nrule = "cohort"\nrefresh = "2h"\n'
        "[fetch]\ndelay = 2\nallow_private = true\n"
        '[alarms]\nwebhook = "https://example.org/"\ncommand = ["cat"]\nsilent = "90m"\n'
        '[[sources]]\naddress = "pages"\nevery = 30\nlabels_from = "category"\nmap = "map.csv"\n',
    )

    assert settings.desk.store == "postgresql+psycopg://x@y/z"
    assert (settings.model.refresh, settings.alarms.silent) == (7200, 5400)
    assert (settings.fetch.delay, settings.fetch.allow_private) == (2.0, True)
    (source,) = settings.sources
    assert (source.address, source.every) == (str(tmp_path / "pages"), 30)
    assert source.mapping.labels == {"sport": ["sport"]}


def test_environment(tmp_path):
    """Variables replace single settings."""
    settings = read(
        tmp_path,
        MINIMAL,
        POLYTOPIC_DESK_DESK_STORE="sqlite:///other.db",
        POLYTOPIC_DESK_MODEL_RULE="t-norm",
        POLYTOPIC_DESK_MODEL_REFRESH="5m",
        POLYTOPIC_DESK_FETCH_ALLOW_PRIVATE="true",
        POLYTOPIC_DESK_ALARMS_COMMAND='["mail", "me"]',
        POLYTOPIC_DESK_ALARMS_WINDOW="50",
    )

    assert settings.desk.store == "sqlite:///other.db"
    assert (settings.model.rule, settings.model.refresh) == ("t-norm", 300)
    assert settings.fetch.allow_private is True
    assert (settings.alarms.command, settings.alarms.window) == (["mail", "me"], 50)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[desk", "not valid TOML"),
        ("[desk]\n", r"\[\[sources\]\] is missing|no 'store'"),
        ('[desk]\nstore = "x"\n', "must name at least one source"),
        (MINIMAL + "[other]\n", r"unknown section \[other\]"),
        (MINIMAL + 'evry = "1m"\n', "unknown setting 'evry'"),
        (MINIMAL + 'every = "soon"\n', "every == 'soon', must be like 30s"),
        (MINIMAL + 'labels_from = "section"\n', "labels_from and map belong together"),
        (MINIMAL + 'labels_from = "title"\nmap = "x"\n', "must be category or section"),
        (MINIMAL + '[model]\nname = "best"\n', "model == 'best'"),
        (MINIMAL + '[model]\nrule = "best"\n', "rule == 'best'"),
        (MINIMAL + '[fetch]\ndelay = "1"\n', "delay == '1', must be of type float"),
        (MINIMAL + "[fetch]\nretries = true\n", "retries == True, must be of type int"),
        (MINIMAL + '[alarms]\ncommand = "mail"\n', "must be a list of strings"),
        (MINIMAL.replace("[desk]", '[desk]\nlog = "xml"'), "must be text or json"),
        (MINIMAL.replace("[desk]", '[desk]\nlevel = "all"'), "must be one of debug"),
        ("desk = 5\n" + MINIMAL.partition("[[")[2].join(["[[", ""]), r"\[desk\] must be a table"),
    ],
)
def test_wrong_settings(tmp_path, text, reason):
    """The file and the setting are named."""
    with pytest.raises(AcquisitionError, match=reason):
        read(tmp_path, text)


def test_a_missing_file(tmp_path):
    """It is named."""
    with pytest.raises(AcquisitionError, match=r"no\.toml' cannot be read"):
        read_settings(tmp_path / "no.toml", {})
