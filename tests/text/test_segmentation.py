"""Terms of scripts without spaces between words."""

import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polytopic import Labeler, load
from polytopic.errors import PolytopicError
from polytopic.explain.html import explanation_to_html
from polytopic.text import Analyzer, Span
from polytopic.text.segmentation import LONGEST

UNSPACED_TEXT = st.text(
    st.sampled_from("日本々ーのカｶﾞﾟがกรุ่เ\u0301\ufe00\U00020000ab1'’- \u200d。\ud800")
)
TEXTS = ["球队赢得了比赛", "电影里的演员", "关于球队的电影", "演员和导演"]
LABELS = [["sport"], ["film"], ["film", "sport"], ["film"]]
PACKAGES = {"ja": "sudachipy", "th": "pythainlp", "zh": "jieba"}


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("zh", "北京大学。茶", ["北京", "京大", "大学", "茶"]),
        ("zh", "我的iPhone手机2024年款", ["我的", "iPhone", "手机", "年款"]),
        ("ja", "人々のデータ", ["人々", "々の", "のデ", "デー", "ータ"]),
        ("ja", "ｶﾞｶﾞ", ["ｶﾞｶﾞ"]),
        ("th", "ที่นี่", ["ที่นี่"]),
        ("th", "กรุงเทพ", ["กรุ", "รุง", "งเ", "เท", "ทพ"]),
        ("zh", "𠀀𠀁𠀂", ["𠀀𠀁", "𠀁𠀂"]),
    ],
)
def test_adjacent_pairs(language, text, tokens):
    """A run becomes its pairs of letters with their marks; other scripts and signs end it."""
    spans = Analyzer(language, min_length=1, stop_words=None).spans(text)

    assert [text[start:end] for _, start, end in spans] == tokens


def test_half_width_letters():
    """Half-width Katakana and their sound marks give the terms of full-width ones."""
    analyzer = Analyzer("ja")

    assert analyzer.terms("ｻｯｶｰｶﾞ") == analyzer.terms("サッカーガ")


def test_stop_words():
    """Pairs that are stop words are dropped."""
    assert Analyzer("zh").terms("我们踢球") == ["们踢", "踢球"]


def test_only_languages_without_spaces_by_default():
    """Other languages leave a run whole, unless they are told to cut it."""
    text = "The book 北京大学"

    assert Analyzer("en").terms(text) == ["book", "北京大学"]
    assert Analyzer(None).terms("北京大学") == ["北京大学"]
    assert Analyzer("en", segment="bigrams").terms(text) == ["book", "北京", "京大", "大学"]
    assert Analyzer("zh", segment=None).terms("北京大学") == ["北京大学"]


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer("zh"),
        Analyzer("th", min_length=1, numbers=True, hyphens=True),
        Analyzer("en", segment="bigrams", stop_words=None),
    ],
    ids=str,
)
@given(texts=st.lists(UNSPACED_TEXT, max_size=4))
def test_counts_terms_and_places_agree(analyzer, texts):
    """For every text, each place holds a token of its term, and counting finds the same terms."""
    counts, terms = analyzer.count(texts)

    for text, row in zip(texts, counts.toarray(), strict=True):
        spans = analyzer.spans(text)
        assert [span.term for span in spans] == analyzer.terms(text)
        assert all(analyzer.term(text[start:end]) == term for term, start, end in spans)
        found = {term: count for term, count in zip(terms, row, strict=True) if count}
        assert found == Counter(analyzer.terms(text))


def test_a_run_is_not_a_token():
    """Only a pair of letters has a term of its own."""
    analyzer = Analyzer("zh")

    assert analyzer.term("北京") == "北京"
    assert analyzer.term("北京大学") is None


def test_description():
    """It resolves "auto", and is as before for languages with spaces."""
    assert Analyzer("ja").to_dict()["segment"] == "bigrams"
    assert Analyzer("ja", segment=None).to_dict()["segment"] is None
    assert "segment" not in Analyzer("en").to_dict()
    assert Analyzer("ja") == Analyzer("ja", segment="bigrams") != Analyzer("ja", segment=None)
    for analyzer in (Analyzer("ja"), Analyzer("th", segment=None), Analyzer("en")):
        assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"segment": "letters"}, "segment == 'letters', must be 'auto', 'bigrams', 'words' or"),
        ({"segment": ["words"]}, r"segment == \['words'\], must be"),
        ({"segment": "words"}, "segment == 'words' is for the languages ja, th, zh, not for"),
        ({"language": "zh", "normalize": "lemma"}, "'lemma' is not available"),
        ({"language": "zh", "normalize": "stem"}, "'stem' is not available"),
    ],
)
def test_wrong_settings(settings, sentence):
    """They are reported on first use, and when a description is read."""
    with pytest.raises(ValueError, match=sentence):
        Analyzer(**settings).terms("text")
    with pytest.raises(ValueError, match=sentence):
        Analyzer.from_dict(settings)


@pytest.mark.parametrize("language", PACKAGES)
def test_missing_package(language, monkeypatch):
    """The message says how to install the segmenter."""
    monkeypatch.setitem(sys.modules, PACKAGES[language], None)
    monkeypatch.setattr("polytopic.text.segmentation.find_spec", lambda name: None)

    with pytest.raises(PolytopicError, match=r"is not installed.* 'polytopic\[segmenters\]'"):
        Analyzer.from_dict({"language": language, "segment": "words"})


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("zh", "我们喜欢在北京iPhone踢足球", ["喜欢", "北京", "iphone", "踢足球"]),
        ("ja", "東京都でサッカーの試合を見ました", ["東京都", "サッカー", "試合", "まし"]),
        ("th", "ฉันชอบเล่นฟุตบอล", ["ฉัน", "ชอบ", "เล่น", "ฟุตบอล"]),
    ],
)
def test_words(language, text, words):
    """A segmenter finds words, at their places; long runs and marks change nothing."""
    pytest.importorskip(PACKAGES[language])
    analyzer = Analyzer(language, segment="words")

    spans = analyzer.spans(text)

    assert [span.term for span in spans] == words
    assert analyzer.count([text])[1] == sorted(set(words))
    assert all(text[start:end].lower() == term for term, start, end in spans)
    long = text.replace("iPhone", "") * (LONGEST // 4) + "\ufe00"
    counts, terms = analyzer.count([long])
    assert Counter(analyzer.terms(long)) == dict(zip(terms, counts.data, strict=True))


def test_labels_and_explanations(tmp_path):
    """A labeler learns pairs of letters, explains them at their places, and can be saved."""
    labeler = Labeler("pmm1", language="zh").fit(TEXTS, LABELS)
    labeler.save(tmp_path / "m")
    text = "这个球队的比赛"

    loaded = load(tmp_path / "m")
    explanation = loaded.explain(text)

    assert loaded.predict([text]) == labeler.predict([text]) == [["sport"]]
    assert loaded.analyzer_ == Analyzer("zh")
    assert [(p.term, p.start, p.end) for p in explanation.places] == [
        Span("球队", 2, 4),
        Span("队的", 3, 5),
        Span("比赛", 5, 7),
    ]
    page = explanation_to_html(explanation, text)
    assert "球队</mark>" in page
    assert "球队队" not in page
