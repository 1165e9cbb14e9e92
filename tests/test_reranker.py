"""Rerankers: a cross-encoder's numbers become scores in [0, 1]; what isn't one is refused before it can score."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.adapters.reranker import calibrate_scores, load_reranker
from rse_cli.errors import ModelError
from tests.tiny_models import PAIR_POSITIONS, write_cross_encoder, write_model

TEXTS = [
    "the index",
    "long words and much else, and evidence at the end",
    "evidence, evidence",
    "the evidence of words",
    "",
]


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    return load_reranker(str(write_cross_encoder(tmp_path_factory.mktemp("rerankers") / "one")))


def logit(scores):
    return np.log(scores / (1 - scores))


# --- scores ---


def test_scores_are_in_the_unit_interval_and_order_texts_as_the_model_does(reranker):
    scores = reranker.score("query", TEXTS)
    assert scores.dtype == np.float64
    assert np.all((scores > 0) & (scores < 1))
    assert np.argsort(-scores, kind="stable").tolist() == [2, 3, 1, 0, 4]


def test_each_text_keeps_its_place_whatever_its_length_and_batch(reranker):
    texts = [("evidence " if at % 3 == 0 else "the ") + "words " * (at % 7) for at in range(70)]
    together = reranker.score("query", texts)
    alone = [reranker.score("query", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-6)


def test_no_text_gives_no_score(reranker):
    assert reranker.score("query", []).shape == (0,)


def test_the_same_texts_get_the_same_scores_again(reranker):
    assert np.array_equal(reranker.score("query", TEXTS), reranker.score("query", TEXTS))


def test_a_sigmoid_is_applied_once_whether_the_model_has_it_or_not(tmp_path, reranker):
    expected = reranker.score("query", TEXTS)
    for at, activation in enumerate(
        ["torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity", "torch.nn.Identity"]
    ):
        other = load_reranker(str(write_cross_encoder(tmp_path / str(at), activation=activation)))
        assert other.score("query", TEXTS) == pytest.approx(expected, abs=1e-6)


def test_any_other_activation_of_the_model_comes_before_the_sigmoid(tmp_path, reranker):
    bounded = load_reranker(str(write_cross_encoder(tmp_path / "m", activation="torch.nn.modules.activation.Tanh")))
    expected = np.tanh(logit(reranker.score("query", TEXTS)))
    assert logit(bounded.score("query", TEXTS)) == pytest.approx(expected, abs=1e-4)


def test_two_labels_give_the_probability_of_the_last(tmp_path, reranker):
    # The first label's logit is 0, so the softmax is the sigmoid of the second.
    for at, activation in enumerate([None, "torch.nn.modules.activation.Sigmoid"]):
        two = load_reranker(str(write_cross_encoder(tmp_path / str(at), labels=2, activation=activation)))
        assert two.score("query", TEXTS) == pytest.approx(reranker.score("query", TEXTS), abs=1e-6)


def test_text_beyond_the_models_limit_is_cut(reranker):
    filler = "the " * PAIR_POSITIONS
    cut, plain = reranker.score("query", [filler + "evidence", filler + "words"])
    assert cut == plain
    early, _ = reranker.score("query", ["evidence " + filler, filler])
    assert early > plain


def test_arguments_that_are_not_utf8_are_scored(reranker):
    score = reranker.score("caf\udce9", ["evidence \ud800"])
    assert 0 < score[0] < 1


@given(st.lists(st.floats(-1e30, 1e30), min_size=1), st.booleans())
def test_calibration_keeps_the_order_and_stays_in_the_unit_interval(values, is_probability):
    scores = calibrate_scores(np.array(values), is_probability)
    assert np.all((scores >= 0) & (scores <= 1))
    assert np.all(np.diff(scores[np.argsort(values, kind="stable")]) >= 0)


def test_calibration_leaves_probabilities_as_they_are():
    assert calibrate_scores(np.array([0.0, 0.25, 1.0]), True).tolist() == [0.0, 0.25, 1.0]


def test_calibration_gives_the_sigmoid_of_logits():
    assert calibrate_scores(np.array([-2.0, 0.0, 2.0]), False) == pytest.approx(
        [0.11920292202211755, 0.5, 0.8807970779778823], abs=1e-15
    )


# --- loading ---


def test_a_name_without_an_owner_is_found_in_the_cache_among_the_librarys_own(tmp_path, monkeypatch, reranker):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached = tmp_path / "models--cross-encoder--tiny"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("abc\n")
    write_cross_encoder(cached / "snapshots" / "abc")
    expected = reranker.score("query", TEXTS)
    assert np.array_equal(load_reranker("tiny").score("query", TEXTS), expected)
    assert np.array_equal(load_reranker("cross-encoder/tiny").score("query", TEXTS), expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such", r"no reranker no-such on this machine.*snapshot_download\('cross-encoder/no-such'\)"),
        ("me/no-such", r"no reranker me/no-such on this machine.*snapshot_download\('me/no-such'\)"),
        ("./no-such", r"\./no-such is no folder with a reranker"),
    ],
)
def test_a_reranker_that_is_not_here_is_named_with_what_to_do(tmp_path, monkeypatch, name, message):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=message):
        load_reranker(name)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="is no folder with a reranker"):
        load_reranker(str(tmp_path))


def test_a_model_of_embeddings_is_refused_as_the_library_would_score_with_random_numbers(tmp_path):
    with pytest.raises(ModelError, match=r"m is no reranker: it holds no weights for classifier\.weight"):
        load_reranker(str(write_model(tmp_path / "m")))


def test_more_than_two_labels_are_refused(tmp_path):
    with pytest.raises(ModelError, match="has 3 labels, which make no score"):
        load_reranker(str(write_cross_encoder(tmp_path / "m", labels=3)))


def test_pickled_weights_are_not_read(tmp_path):
    folder = write_cross_encoder(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"has no \.safetensors weights in .*, pickled ones aren't loaded"):
        load_reranker(str(folder))


def test_code_in_the_folder_is_never_run(tmp_path):
    ran = tmp_path / "ran"
    custom = {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.Config", "AutoModelForSequenceClassification": "mine.Model"},
    }
    folder = write_cross_encoder(tmp_path / "m", config=custom)
    (folder / "mine.py").write_text(f"open({str(ran)!r}, 'w')\n")
    with pytest.raises(ModelError, match="wants to run code of its own, which is never done"):
        load_reranker(str(folder))
    assert not ran.exists()


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_file_is_one_line(tmp_path, file):
    folder = write_cross_encoder(tmp_path / "m")
    (folder / file).write_bytes(b"{nonsense")
    with pytest.raises(ModelError) as caught:
        load_reranker(str(folder))
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    folder = write_cross_encoder(tmp_path / "m")
    raw = (folder / "model.safetensors").read_bytes()
    size = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:size])
    begin, end = (size + at for at in header["classifier.bias"]["data_offsets"])
    (folder / "model.safetensors").write_bytes(raw[:begin] + np.float32(np.nan).tobytes() + raw[end:])
    with pytest.raises(ModelError, match="gave a score that isn't finite"):
        load_reranker(str(folder))


def test_nothing_is_written_to_the_streams(tmp_path, capfd):
    load_reranker(str(write_cross_encoder(tmp_path / "m"))).score("query", TEXTS)
    with pytest.raises(ModelError):
        load_reranker(str(write_model(tmp_path / "n")))
    assert capfd.readouterr() == ("", "")
