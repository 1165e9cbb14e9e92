"""Encoders: numpy gives what sentence-transformers gives, nothing is cut silently, damaged files are refused."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.encoders import agree_with_sentence_transformers, choose_backend, load_encoder
from rse_cli.adapters.encoders.bert_files import describe_bert
from rse_cli.adapters.encoders.bert_forward import _attend_group, _gelu
from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL, find_model, hash_weights, read_prompts, verify_weights
from rse_cli.adapters.encoders.numpy_bert import choose_rows
from rse_cli.adapters.encoders.safetensors import open_tensors
from rse_cli.adapters.encoders.wordpiece import divide_texts, load_tokenizer, unit_vectors
from rse_cli.errors import ModelError
from tests.tiny_models import INNER, POSITIONS, WIDTH, write_model, write_raw_safetensors, write_safetensors

TEXTS = [
    "The segment ends where the evidence ends.",
    "Ümläuts, CAPITALS & naïve café — 12,345.67 €",
    "全文检索 and にほんご",
    "",
    " \n\t ",
    "x" * 300,
    "the index, the segments; long passages indexing " * 20,
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a mean-pooling model that takes 24 tokens."""
    return write_model(tmp_path_factory.mktemp("models") / "mean")


@pytest.fixture(scope="module")
def encoder(model):
    return load_encoder(str(model), for_query=True, backend="numpy")


@pytest.fixture(scope="module")
def reference():
    """Load a folder with sentence-transformers; importing it takes seconds, so all that need it share this."""
    from rse_cli.adapters.encoders.sentence_transformers import load_sentence_transformers

    return lambda folder: load_sentence_transformers("reference", folder)


def cosines(a, b):
    return np.einsum("ij,ij->i", a, b)


# --- the same vectors as sentence-transformers ---


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("prompts", [{}, {"query": "query: ", "document": "passage: "}])
@pytest.mark.parametrize("lower_case", [True, False])
def test_vectors_equal_those_of_sentence_transformers(tmp_path, reference, pooling, prompts, lower_case):
    folder = write_model(tmp_path / "m", pooling=pooling, prompts=prompts, lower_case=lower_case)
    ours, theirs = load_encoder(str(folder), for_query=True, backend="numpy"), reference(folder)
    queries, truncated = ours.encode_queries(TEXTS)
    # Without lower-casing, CAPITALS is one unknown word.
    assert truncated == [False, lower_case, False, False, False, False, True]
    assert np.abs(queries - theirs.model.encode_query(TEXTS, normalize_embeddings=True)).max() < 1e-6
    short = [text for text, cut in zip(TEXTS, truncated, strict=True) if not cut]
    expected = theirs.model.encode_document(short, normalize_embeddings=True)
    assert np.abs(ours.encode_documents(short) - expected).max() < 1e-6


def test_documents_over_the_limit_are_treated_alike_by_both_encoders(model, encoder, reference):
    theirs = reference(model)
    assert np.abs(encoder.encode_documents(TEXTS) - theirs.encode_documents(TEXTS)).max() < 1e-6
    assert theirs.encode_queries(TEXTS)[1] == encoder.encode_queries(TEXTS)[1]


def test_a_model_saved_by_sentence_transformers_is_understood(tmp_path, model, encoder, reference):
    reference(model).model.save(str(tmp_path / "saved"))
    saved = load_encoder(str(tmp_path / "saved"), for_query=True, backend="numpy")
    assert saved.identity.max_tokens == 24
    assert np.abs(saved.encode_documents(TEXTS) - encoder.encode_documents(TEXTS)).max() < 1e-6


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_half_precision_weights_are_widened(tmp_path, encoder, kind):
    half = load_encoder(str(write_model(tmp_path / kind, kind=kind)), for_query=True, backend="numpy")
    assert cosines(half.encode_documents(TEXTS), encoder.encode_documents(TEXTS)).min() > 0.999


def test_a_model_that_agrees_with_sentence_transformers_runs_in_numpy(model, encoder, reference):
    assert agree_with_sentence_transformers(model, encoder)
    assert choose_backend(str(model)) == "numpy"


def test_an_encoder_with_other_weights_does_not_agree(tmp_path, encoder, reference):
    assert not agree_with_sentence_transformers(write_model(tmp_path / "other", seed=1), encoder)


def test_gelu_is_exact_to_float_precision():
    x = np.linspace(-30, 30, 120_001, dtype=np.float32)
    exact = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()])
    y = (x - np.float32(0.25)).reshape(-1, 1)
    with np.errstate(over="ignore"):
        _gelu(y, np.array([0.25], dtype=np.float32))
    assert (np.abs(y[:, 0] - exact) / np.maximum(1, np.abs(exact))).max() < 4e-7


def test_attention_survives_scores_that_lie_far_apart():
    query = np.array([[[[30.0], [-30.0]]]], dtype=np.float32)
    key = np.array([[[[1.0, 0.9]]]], dtype=np.float32) * 10
    value = np.array([[[[1.0], [2.0]]]], dtype=np.float32)
    out = np.empty_like(value)
    _attend_group(query, key, value, out)
    assert out.ravel().tolist() == pytest.approx([1.0, 2.0], abs=1e-6)


# --- batches and pieces ---


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=12))
def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(encoder, texts):
    together = encoder.encode_documents(texts)
    alone = np.concatenate([encoder.encode_documents([text]) for text in texts])
    assert together.shape == (len(texts), WIDTH)
    assert np.abs(together - alone).max() < 2e-6
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-6


def test_a_query_has_the_same_bits_alone_and_among_others():
    encoder = load_encoder(DEFAULT_MODEL, for_query=True)
    texts = ["", "pump", *(" ".join(["how do I clean the filter of the pump"] * n)[: 9 * n] for n in range(1, 40))]
    alone = np.concatenate([encoder.encode_queries([text])[0] for text in texts])
    for some in (texts, texts[::-1], texts[3:17]):
        np.testing.assert_array_equal(encoder.encode_queries(some)[0], alone[[texts.index(text) for text in some]])


def test_queries_begin_at_fewer_rows_only_where_the_product_of_few_rows_has_the_same_bits(encoder):
    def multiply(rows, weight):
        return (rows.astype(np.float64) @ weight.astype(np.float64)).astype(np.float32)

    def multiply_by_place(rows, weight):
        product = multiply(rows, weight)
        product[24:36] += np.float32(len(rows) == 36)
        return product

    assert choose_rows(encoder.network, multiply) == 12
    assert choose_rows(encoder.network, multiply_by_place) == 24


def test_large_batches_are_split_and_come_back_in_order(encoder):
    texts = [f"{i} " + "the index " * (i % 9) for i in range(900)]
    vectors = encoder.encode_documents(texts)
    for i in (0, 450, 899):
        assert np.abs(vectors[i] - encoder.encode_documents([texts[i]])[0]).max() < 2e-6


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="ab é全x\n.,-가\U0001f600\ud800", max_size=400))
def test_pieces_tile_the_text_and_each_fits_the_limit(model, text):
    division = divide_texts(load_tokenizer(model), [text], "the ", 24)
    assert "".join(division.pieces) == text
    assert max(len(tokens) for tokens in division.tokens) <= 24


def test_pieces_end_between_words(model):
    text = "the index passage long words " * 3
    # 12 tokens less [CLS] and [SEP] leave 10 words.
    assert divide_texts(load_tokenizer(model), [text], "", 12).pieces == [
        "the index passage long words the index passage long words ",
        "the index passage long words ",
    ]


def test_no_piece_begins_inside_a_word(model):
    text = "segments indexing words passage " * 5
    pieces = divide_texts(load_tokenizer(model), [text], "", 12).pieces
    assert len(pieces) > 2
    assert all(piece.split()[0] in ("segments", "indexing", "words", "passage") for piece in pieces)


def test_the_vector_of_a_long_text_is_the_mean_of_its_pieces_weighted_by_tokens(encoder):
    text = "the index passage long words " * 9
    division = divide_texts(encoder.tokenizer, [text], "", 24)
    weights = [len(tokens) for tokens in division.tokens]
    assert len(weights) == 3
    mean = np.average(encoder.encode_documents(division.pieces), axis=0, weights=weights)
    assert np.abs(encoder.encode_documents([text])[0] - mean / np.linalg.norm(mean)).max() < 1e-6


def test_the_end_of_a_long_document_counts_but_the_end_of_a_long_query_is_cut(encoder):
    one, two = ("the index " * 60 + end for end in ("evidence", "全文检索 query"))
    (vectors, truncated), documents = encoder.encode_queries([one, two]), encoder.encode_documents([one, two])
    assert truncated == [True, True]
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-6
    assert np.abs(documents[0] - documents[1]).max() > 1e-3


def test_no_text_gives_no_vector(encoder):
    assert encoder.encode_documents([]).shape == (0, WIDTH)
    assert encoder.encode_queries([])[1] == []


def test_lone_surrogates_are_encoded_as_question_marks(encoder):
    odd, plain = encoder.encode_documents(["the \udce9 index", "the ? index"])
    assert np.abs(odd - plain).max() < 1e-6


def test_a_prompt_that_leaves_no_room_is_refused(tmp_path):
    folder = write_model(tmp_path / "m", prompts={"document": "a, " * 10})
    with pytest.raises(ModelError, match="prompt fills its limit of 24 tokens"):
        load_encoder(str(folder), for_query=True, backend="numpy").encode_documents(["the index " * 30])


def test_vectors_of_no_direction_are_refused():
    for bad in (0.0, np.nan, np.inf):
        with pytest.raises(ModelError, match="zero or not finite"):
            unit_vectors(np.array([[1.0, 0.0], [bad, 0.0]], dtype=np.float32))


# --- what a model's files say ---


def test_the_passage_prompt_stands_for_a_missing_document_prompt(tmp_path):
    folder = write_model(tmp_path / "m", prompts={"query": "query: ", "passage": "passage: ", "document": ""})
    assert read_prompts(folder) == ("query: ", "passage: ")


def test_the_identity_says_what_must_agree(model, encoder):
    identity = encoder.identity
    assert (identity.name, identity.dimension, identity.pooling, identity.max_tokens) == (str(model), WIDTH, "mean", 24)
    assert identity.weights == hash_weights(model)


def test_the_hash_of_the_weights_tells_a_model_from_a_larger_one(tmp_path, model):
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(3, dtype=np.float32)})
    small = hash_weights(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(4, dtype=np.float32)})
    assert len({small, hash_weights(tmp_path), hash_weights(model)}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"model_type": "distilbert"},
        {"auto_map": {"AutoModel": "code.Model"}},
        {"is_decoder": True},
        {"num_attention_heads": 0},
        {"hidden_size": "wide"},
    ],
)
def test_anything_beyond_plain_bert_is_left_to_sentence_transformers(tmp_path, change):
    assert describe_bert(write_model(tmp_path / "m", config=change)) is None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}),
        ("modules.json", []),
        ("modules.json", [{"type": "sentence_transformers.models.Transformer", "path": ""}]),
        ("modules.json", [{"type": "custom.Transformer", "path": ""}, {"type": "custom.Pooling", "path": "1_Pooling"}]),
        ("modules.json", {"type": 1}),
        ("sentence_bert_config.json", {"max_seq_length": 24, "query_length": 8}),
        ("config.json", []),
    ],
)
def test_other_modules_and_settings_are_left_to_sentence_transformers(tmp_path, file, content):
    folder = write_model(tmp_path / "m")
    (folder / file).write_text(json.dumps(content))
    assert describe_bert(folder) is None


def test_a_pooling_that_numpy_does_not_know_runs_in_sentence_transformers(tmp_path, reference):
    folder = write_model(tmp_path / "m", pooling="max")
    assert choose_backend(str(folder)) == "sentence-transformers"
    encoder = load_encoder(str(folder), for_query=True)
    assert (encoder.identity.pooling, encoder.identity.dimension, encoder.identity.max_tokens) == ("model", WIDTH, 24)
    assert np.abs(np.linalg.norm(encoder.encode_documents(TEXTS), axis=1) - 1).max() < 1e-6


def test_a_limit_of_the_tokenizer_holds_where_the_model_names_none(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "sentence_bert_config.json").unlink()
    description = describe_bert(folder)
    assert description is not None
    assert description.max_tokens == POSITIONS


def test_a_model_works_from_a_folder_that_cannot_be_written(tmp_path, encoder):
    folder = write_model(tmp_path / "m")
    paths = [*folder.rglob("*"), folder]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        read_only = load_encoder(str(folder), for_query=True, backend="numpy")
        assert np.abs(read_only.encode_documents(TEXTS) - encoder.encode_documents(TEXTS)).max() < 1e-6
    finally:
        for path in paths:
            path.chmod(0o755)


# --- finding models ---


def test_a_name_is_found_in_the_local_cache(tmp_path, monkeypatch):
    cached = tmp_path / "hub" / "models--owner--tiny"
    folder = write_model(cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_model("owner/tiny") == folder
    assert load_encoder("owner/tiny", for_query=True, backend="numpy").identity.name == "owner/tiny"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody/nothing", "no model nobody/nothing on this machine"),
        ("nothing", "snapshot_download\\('sentence-transformers/nothing'\\)"),
        ("./missing", "there is no folder ./missing"),
    ],
)
def test_a_model_that_is_not_there_is_one_line_that_says_what_to_do(tmp_path, monkeypatch, name, message):
    for variable in ("HF_HOME", "HF_HUB_CACHE", "SENTENCE_TRANSFORMERS_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(ModelError, match=message) as caught:
        load_encoder(name, for_query=True)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="is no model"):
        load_encoder(str(tmp_path), for_query=True)


def test_pickled_weights_are_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickled weights aren't loaded"):
        load_encoder(str(folder), for_query=True)


@pytest.mark.parametrize("file", ["config.json", "modules.json"])
def test_code_inside_a_model_is_never_run(tmp_path, reference, file):
    folder = write_model(tmp_path / "m", config={"model_type": "own", "auto_map": {"AutoConfig": "code.C"}})
    if file == "modules.json":
        (folder / file).write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "code.Module"}]))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ModelError, match="code of its own, which is never done"):
        load_encoder(str(folder), for_query=True)
    assert not (tmp_path / "ran").exists()


# --- damaged files ---


def tensor(**changes):
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"no json",
        b"[]",
        b'{"a": 1}',
        b"[" * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
        json.dumps({"a": tensor(shape=[3])}).encode(),
        json.dumps({"a": tensor(shape=[-2])}).encode(),
        json.dumps({"a": tensor(shape=[2.0])}).encode(),
        json.dumps({"a": tensor(shape=[2**62, 4])}).encode(),
        json.dumps({"a": tensor(data_offsets=[8, 0])}).encode(),
        json.dumps({"a": tensor(data_offsets=[-8, 0])}).encode(),
        json.dumps({"a": tensor(data_offsets=[0, 800], shape=[200])}).encode(),
        json.dumps({"a": tensor(data_offsets=[0])}).encode(),
        json.dumps({"a": tensor(), "b": tensor()}).encode(),
        json.dumps({"a": tensor(dtype=["F32"])}).encode(),
        json.dumps({"a": tensor(data_offsets=[0, 4], shape=[1])}).encode(),
        json.dumps({}).encode(),
    ],
)
def test_a_header_that_does_not_describe_the_file_exactly_is_refused(tmp_path, header):
    path = tmp_path / "model.safetensors"
    write_raw_safetensors(path, header, bytes(8))
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        open_tensors(path)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 16, (2**40).to_bytes(8, "little") + b"{}"])
def test_a_file_too_short_for_its_header_is_refused(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    for read in (lambda: open_tensors(tmp_path / "model.safetensors"), lambda: hash_weights(tmp_path)):
        with pytest.raises(ModelError):
            read()


@pytest.mark.parametrize("pad", range(4))
def test_tensors_are_read_wherever_the_header_ends(tmp_path, pad):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_safetensors(tmp_path / "w", {"first": np.ones(1, dtype=np.float32), "a": values}, pad=pad)
    assert np.array_equal(open_tensors(tmp_path / "w").tensor("a", (2, 3)), values)


def test_aligned_tensors_are_views_that_cannot_be_written(tmp_path):
    write_safetensors(tmp_path / "w", {"a": np.ones(4, dtype=np.float32)}, pad=0)
    header_end = int.from_bytes((tmp_path / "w").read_bytes()[:8], "little")
    write_safetensors(tmp_path / "w", {"a": np.ones(4, dtype=np.float32)}, pad=-header_end % 4)
    values = open_tensors(tmp_path / "w").tensor("a", (4,))
    assert not values.flags.owndata
    assert not values.flags.writeable


def test_a_tensor_that_is_missing_or_misshapen_or_not_float_is_refused(tmp_path):
    write_safetensors(tmp_path / "w", {"a": np.ones(4, dtype=np.float32)})
    file = open_tensors(tmp_path / "w")
    with pytest.raises(ModelError, match="has no tensor b"):
        file.tensor("b", (4,))
    with pytest.raises(ModelError, match=r"shape \(4,\), config.json asks for \(5,\)"):
        file.tensor("a", (5,))
    write_raw_safetensors(tmp_path / "w", json.dumps({"a": tensor(dtype="I32")}).encode(), bytes(8))
    with pytest.raises(ModelError, match="stored as I32"):
        open_tensors(tmp_path / "w").tensor("a", (2,))


def test_weights_that_do_not_fit_the_configuration_are_refused(tmp_path):
    folder = write_model(tmp_path / "m", config={"intermediate_size": INNER * 2})
    with pytest.raises(ModelError, match=r"encoder\.layer\.0\.intermediate"):
        load_encoder(str(folder), for_query=True, backend="numpy")


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["vocab"]["evidence"] = 5000
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match="belong to different models"):
        load_encoder(str(folder), for_query=True, backend="numpy").encode_documents(["evidence"])


def test_a_damaged_tokenizer_is_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="can't read the tokenizer"):
        load_encoder(str(folder), for_query=True, backend="numpy")


def test_weights_that_are_not_finite_are_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-400] + b"\xff" * 400)
    with pytest.raises(ModelError, match="zero or not finite"):
        load_encoder(str(folder), for_query=True, backend="numpy").encode_queries(["the index"])


# --- the default model ---


def test_the_default_model_gives_the_published_cosine():
    encoder = load_encoder("all-MiniLM-L6-v2", for_query=False)
    question, answer = encoder.encode_documents(
        ["How do I reset my password?", "Choose Forgot password on the sign-in page."]
    )
    # From SentenceTransformer.encode of sentence-transformers 6.2 with the same weights.
    assert float(question @ answer) == pytest.approx(0.6616564, abs=2e-6)
    assert (encoder.identity.dimension, encoder.identity.max_tokens) == (384, 256)


def test_the_full_name_of_the_default_model_is_the_default_model():
    short, full = (
        load_encoder(name, for_query=True) for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
    )
    assert short.identity == full.identity


def test_a_folder_in_the_way_does_not_replace_the_default_model(tmp_path, monkeypatch):
    write_model(tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)
    assert load_encoder("all-MiniLM-L6-v2", for_query=True).identity.dimension == 384
    assert load_encoder("./all-MiniLM-L6-v2", for_query=True, backend="numpy").identity.dimension == WIDTH


def test_one_changed_byte_in_the_default_weights_is_found(tmp_path):
    path = Path(shutil.copy(find_model("all-MiniLM-L6-v2") / "model.safetensors", tmp_path / "model.safetensors"))
    verify_weights(tmp_path)
    with path.open("r+b") as file:
        file.seek(50_000_000)
        byte = file.read(1)
        file.seek(50_000_000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ModelError, match="isn't the published all-MiniLM-L6-v2"):
        verify_weights(tmp_path)


def test_the_default_model_needs_no_torch_and_no_home(tmp_path):
    script = (
        "import sys\n"
        "from rse_cli.adapters.encoders import choose_backend, load_encoder\n"
        "assert choose_backend('all-MiniLM-L6-v2') == 'numpy'\n"
        "load_encoder('all-MiniLM-L6-v2', for_query=True).encode_queries(['how?'])\n"
        "heavy = {'torch', 'scipy', 'transformers', 'sentence_transformers', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": root},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_sentence_transformers_says_nothing_on_the_terminal(tmp_path, reference, capfd):
    encoder = reference(write_model(tmp_path / "m", pooling="max", prompts={"query": "query: "}))
    encoder.encode_queries(["the index " * 99])
    encoder.encode_documents(["the index " * 99])
    assert capfd.readouterr() == ("", "")
