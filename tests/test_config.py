"""Settings: which source wins, what files may hold, and what a project may not decide for its user."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.config import KEYS, Settings, choose_store, load_settings
from rse_cli.errors import ConfigError, UsageError

METHOD_KEYS: Mapping[str, Mapping[str, type]] = {
    "rse": {"segment_cost": float, "max_chars": int, "weight_c0": float},
    "sentence-window": {"window": int, "joined": bool, "similarity": str},
}


class Home:
    """A project and a home, with their settings files."""

    def __init__(self, base: Path) -> None:
        self.root = base / "project"
        self.root.mkdir()
        self.home = base / "home"
        self.user_file = self.home / ".config" / "rse" / "config.toml"
        self.user_file.parent.mkdir(parents=True)

    def load(
        self,
        project: str | None = None,
        user: str | None = None,
        environ: Mapping[str, str] | None = None,
        check_model: bool = True,
        **flags: Any,
    ) -> Settings:
        if project is not None:
            (self.root / "rse.toml").write_text(project)
        if user is not None:
            self.user_file.write_text(user)
        return load_settings(self.root, {"HOME": str(self.home), **(environ or {})}, flags, METHOD_KEYS, check_model)

    def find_faults(self, error: type[Exception] = ConfigError, **given: Any) -> list[str]:
        with pytest.raises(error) as caught:
            self.load(**given)
        assert type(caught.value) is error
        return str(caught.value).replace(str(self.user_file), "USER").split("; ")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# Which source wins


def test_without_any_source_the_defaults_hold() -> None:
    settings = load_settings(None, {}, {}, METHOD_KEYS)
    assert settings.ingest == {
        "model": "all-MiniLM-L6-v2",
        "trusted_models": (),
        "chunk_chars": 300,
        "headers": "normal",
        "include": (),
        "exclude": (),
        "hidden": False,
        "no_ignore": False,
        "max_size": 50_000_000,
        "read_timeout": 20.0,
        "read_memory": 1_000_000_000,
        "lock_timeout": 60.0,
    }
    assert settings.query == {
        "preset": "balanced",
        "max_chars": None,
        "fill": False,
        "limit": None,
        "min_confidence": None,
        "path": (),
        "type": (),
        "method": "rse",
        "retriever": "hybrid",
    }
    assert settings.methods == {"rse": {}, "sentence-window": {}}
    assert set(settings.sources.values()) == {"default"}


def test_a_flag_beats_the_environment_beats_the_project_beats_the_user_beats_the_default(home: Home) -> None:
    user = "[query]\nlimit = 1\nmax_chars = 1\nfill = true\npreset = 'find_all'\n"
    project = "[query]\nlimit = 2\nmax_chars = 2\nfill = false\n"
    settings = home.load(project, user, {"RSE_LIMIT": "3", "RSE_MAX_CHARS": "3"}, limit=4, path=[], preset=None)
    assert {key: (settings.query[key], settings.sources["query", key]) for key in KEYS["query"]} == {
        "preset": ("find_all", f"{home.user_file} line 5"),
        "max_chars": (3, "RSE_MAX_CHARS"),
        "fill": (False, "rse.toml line 4"),
        "limit": (4, "--limit"),
        "min_confidence": (None, "default"),
        "path": ((), "default"),
        "type": ((), "default"),
        "method": ("rse", "default"),
        "retriever": ("hybrid", "default"),
    }


def test_a_variable_sets_a_parameter_of_a_method_above_the_files_and_below_the_flags(home: Home) -> None:
    project = "[rse]\nsegment_cost = 99\n"
    assert home.load(project, "", {"RSE_SEGMENT_COST": "7"}).methods["rse"] == {"segment_cost": 7}
    assert home.load(project, "", {"RSE_SEGMENT_COST": "7"}, set=["segment_cost=9"]).methods["rse"] == {
        "segment_cost": 9
    }


def test_lists_replace_each_other_and_are_not_joined(home: Home) -> None:
    settings = home.load("[ingest]\nexclude = ['a', 'b']\ninclude = '*.md'\n", environ={"RSE_EXCLUDE": "c, d"})
    assert settings.ingest["exclude"] == ("c", "d")
    assert settings.ingest["include"] == ("*.md",)


def test_parameters_of_methods_come_from_their_sections_and_set(home: Home) -> None:
    settings = home.load(
        "[rse]\nsegment_cost = 8\nmax_chars = 900\n[sentence-window]\njoined = true\n", set=["max_chars=700"]
    )
    assert settings.methods == {"rse": {"segment_cost": 8.0, "max_chars": 700}, "sentence-window": {"joined": True}}
    assert settings.sources["rse", "max_chars"] == "--set"
    assert settings.sources["rse", "segment_cost"] == "rse.toml line 2"


def test_set_speaks_to_the_chosen_method(home: Home) -> None:
    settings = home.load(method="sentence-window", set=["window=2", "joined=no", "similarity=cosine"])
    assert settings.methods["sentence-window"] == {"window": 2, "joined": False, "similarity": "cosine"}


def test_the_users_file_lies_in_xdg_config_home_if_that_is_absolute(home: Home, tmp_path: Path) -> None:
    other = tmp_path / "xdg" / "rse" / "config.toml"
    other.parent.mkdir(parents=True)
    other.write_text("[query]\nlimit = 7\n")
    home.user_file.write_text("[query]\nlimit = 8\n")
    assert home.load(environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).query["limit"] == 7
    assert home.load(environ={"XDG_CONFIG_HOME": "xdg"}).query["limit"] == 8
    assert home.load(environ={"HOME": ""}).query["limit"] is None


def test_an_empty_variable_counts_as_none(home: Home) -> None:
    assert home.load(environ={"RSE_LIMIT": "", "RSE_HIDDEN": ""}).query["limit"] is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RSE_PRESSET", "RSE_PRESET"),
        ("RSE_MAXCHARS", "RSE_MAX_CHARS"),
        ("RSE_SEGMENT_COSTS", "RSE_SEGMENT_COST"),
        ("rse_limit", "RSE_LIMIT"),
        ("RSE_STOER", "RSE_STORE"),
    ],
)
def test_a_misspelt_variable_is_a_fault_that_names_the_nearest(home: Home, name: str, meant: str) -> None:
    assert home.find_faults(environ={name: "1"}) == [f"{name}: unknown variable", f"did you mean {meant!r}?"]


def test_variables_of_other_programs_are_left_alone(home: Home) -> None:
    home.load(environ={"RSE_ANYTHING": "1", "RSE_": "1", "PRESSET": "1", "RSE_PRESSET": "", "RSE_STORE": "s"})


def test_a_misspelt_store_finds_no_other_one() -> None:
    with pytest.raises(ConfigError, match=r"^RSE_STORR: unknown variable; did you mean 'RSE_STORE'\?$"):
        choose_store(None, {"RSE_STORR": "/a"})


def test_only_a_flag_or_a_variable_chooses_the_store(home: Home) -> None:
    assert choose_store(None, {}) is None
    assert choose_store(None, {"RSE_STORE": "/a"}) == Path("/a")
    assert choose_store("b", {"RSE_STORE": "/a"}) == Path("b")
    assert home.find_faults(project="store = '/a'") == [
        "rse.toml line 1: a file can't choose the store: use --store or RSE_STORE"
    ]


# Faults


def test_all_faults_are_reported_at_once_with_file_line_and_the_nearest_known_name(home: Home) -> None:
    project = """\
limit = 3
speed = 1

[query]
presett = "balanced"
max-chars = 4
chunk_chars = 200
fill = "yes"
limit = 0

[ingst]
hidden = true

[sentence_window]
window = 1

[rse]
weight_c1 = 1
segment_cost = true
"""
    faults = home.find_faults(project=project, user="[ingest]\nheaders = 'big'\n", environ={"RSE_MIN_CONFIDENCE": "2"})
    assert faults == [
        "USER line 2: headers must be normal, strong or none, not 'big'",
        "rse.toml line 1: unknown key 'limit' outside of a section",
        "it belongs under [query]",
        "rse.toml line 2: unknown key 'speed' outside of a section, and keys belong in a section such as [query]",
        "rse.toml line 5: unknown key 'presett' in [query]",
        "did you mean 'preset'?",
        "rse.toml line 6: unknown key 'max-chars' in [query]",
        "did you mean 'max_chars'?",
        "rse.toml line 7: unknown key 'chunk_chars' in [query]",
        "it belongs under [ingest]",
        "rse.toml line 8: fill must be true or false, not 'yes'",
        "rse.toml line 9: limit must be a whole number of at least 1, not 0",
        "rse.toml line 11: unknown section 'ingst'",
        "did you mean 'ingest'?",
        "rse.toml line 14: unknown section 'sentence_window'",
        "did you mean 'sentence-window'?",
        "rse.toml line 18: unknown key 'weight_c1' in [rse]",
        "did you mean 'weight_c0'?",
        "rse.toml line 19: segment_cost must be a number, not true",
        "RSE_MIN_CONFIDENCE: min_confidence must be a number from 0 to 1, not '2'",
    ]


def test_a_flood_of_faults_stays_readable(home: Home) -> None:
    project = "[query]\n" + "".join(f"x{number} = 1\n" for number in range(50))
    assert home.find_faults(project=project)[-1] == "and 30 more"


def test_faults_of_flags_alone_are_wrong_use(home: Home) -> None:
    faults = home.find_faults(UsageError, limit=0, set=["weight_c00=1", "max_chars", "max_chars=x"])
    assert faults == [
        "--limit must be a whole number of at least 1, not 0",
        "--set: the method rse has no parameter 'weight_c00'",
        "did you mean 'weight_c0'?",
        "--set takes key=value, not 'max_chars'",
        "--set: max_chars must be a whole number, not 'x'",
    ]


@pytest.mark.parametrize("method", ["query", "elsewhere"])
def test_set_needs_a_known_method(home: Home, method: str) -> None:
    assert home.find_faults(UsageError, method=method, set=["limit=1"]) == [
        f"--set: the method {method} has no parameter 'limit'"
    ]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[query]\nlimit = \n", "rse.toml line 2, column 9: invalid value"),
        (b"[query]\nlimit = 1\nlimit = 2\n", "rse.toml line 3, column 10: cannot overwrite a value"),
        (b"x = 'abc", 'rse.toml at the end of document: expected "\'"'),
        (b"a = 1\nb = '\xff'", "rse.toml line 2: not UTF-8"),
        (b"a = " + b"[" * 5_000, "rse.toml: nested too deeply"),
        (b".".join([b"a"] * 400_000) + b" = 1", "rse.toml: nested too deeply"),
        (b"query = 3", "rse.toml line 1: [query] must be a section"),
        (b"[[query]]", "rse.toml: [query] must be a section"),
        (b"#" * 1_000_001, "rse.toml has more than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_settings_file_says_where_and_why(home: Home, content: bytes, fault: str) -> None:
    (home.root / "rse.toml").write_bytes(content)
    assert home.find_faults() == [fault]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(home: Home) -> None:
    (home.root / "rse.toml").write_bytes(b"\xef\xbb\xbf[query]\r\nlimit = 2\r\n")
    settings = home.load()
    assert (settings.query["limit"], settings.sources["query", "limit"]) == (2, "rse.toml line 2")


@given(st.text(max_size=60))
def test_any_text_gives_settings_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "rse.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        settings = load_settings(root, {}, {}, METHOD_KEYS)
    except ConfigError as error:
        assert str(error).startswith("rse.toml")
        assert "\x1b" not in str(error)
    else:
        assert settings == load_settings(None, {}, {}, METHOD_KEYS)


NAMES = st.sampled_from([*KEYS, *METHOD_KEYS, "source_weights", "store", "qeury"])
NUMBERS = ("1", "-1", "0.5", "1e999", "nan", "99999999999999999999")
WORDS = ("true", "''", "'rse'", "'50MB'", "'*.md'", "1979-05-27", "'\\u0000'", "'../../etc'")
LISTS = ("[]", "['a', 1]", "[[]]", "{}", "{ recall = 0.9 }")
LITERALS = st.sampled_from([*NUMBERS, *WORDS, *LISTS])


@given(
    st.lists(
        st.tuples(
            NAMES, st.sampled_from(sorted({key for keys in KEYS.values() for key in keys} | {"x", "window"})), LITERALS
        ),
        max_size=4,
        unique_by=lambda entry: entry[0],
    )
)
def test_any_sections_keys_and_values_give_settings_or_faults_with_their_line(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "rse.toml").write_text("".join(f"[{section}]\n{key} = {value}\n" for section, key, value in entries))
    try:
        settings = load_settings(root, {}, {}, METHOD_KEYS)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1
        assert all(
            fault.startswith(("rse.toml line ", "did you", "it belongs", "if you", "known are"))
            for fault in str(error).split("; ")
        )
    else:
        taken = {f"rse.toml line {2 * number + 2}" for number in range(len(entries))}
        assert set(settings.sources.values()) <= taken | {"default"}


@pytest.mark.parametrize(
    ("text", "size"),
    [("123", 123), ("50MB", 50_000_000), ("1.5 kB", 1_500), ("2GiB", 2 << 30), ("4k", 4_000), ("7 B", 7)],
)
def test_sizes_take_units(home: Home, text: str, size: int) -> None:
    assert home.load(user=f"[ingest]\nmax_size = '{text}'").ingest["max_size"] == size
    assert home.load("[ingest]\nmax_size = 9", environ={"RSE_MAX_SIZE": text}).ingest["max_size"] == size


@pytest.mark.parametrize("value", ["0", "true", "'MB'", "'-1'", "'1e3'", "1.5", "'0.2 B'", "'1 TB'", "nan"])
def test_what_is_no_size_is_refused(home: Home, value: str) -> None:
    assert home.find_faults(project=f"[ingest]\nmax_size = {value}")[0].startswith(
        "rse.toml line 2: max_size must be a number of bytes, or a text such as 50MB, not "
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "true", "'0.5'"])
def test_what_is_no_number_in_range_is_refused(home: Home, value: str) -> None:
    assert len(home.find_faults(project=f"[query]\nmin_confidence = {value}")) == 1


@pytest.mark.parametrize(("text", "value"), [("1", True), ("On", True), ("no", False), ("0", False)])
def test_flags_in_the_environment_are_words(home: Home, text: str, value: bool) -> None:
    assert home.load(environ={"RSE_HIDDEN": text}).ingest["hidden"] is value


# Trust

REFUSED = "rse.toml line 2: the model 'org/other' is neither the default one nor a folder in this project"
OTHER = "[ingest]\nmodel = 'org/other'\n"


def test_a_model_that_only_the_project_names_is_refused_with_the_command_that_consents(home: Home) -> None:
    assert home.find_faults(project=OTHER) == [
        REFUSED,
        "if you trust it, run rse ingest --model org/other or add it to trusted_models under [ingest] in USER",
    ]


def test_a_command_that_uses_no_model_does_not_refuse_it(home: Home) -> None:
    assert home.load(OTHER, check_model=False).ingest["model"] == "org/other"


def test_the_user_consents_by_flag_variable_model_or_trusted_models(home: Home) -> None:
    assert home.load(OTHER, model="org/other").sources["ingest", "model"] == "--model"
    assert home.load(OTHER, environ={"RSE_MODEL": "org/third"}).ingest["model"] == "org/third"
    for user in ("[ingest]\nmodel = 'org/other'", "[ingest]\ntrusted_models = ['org/other']"):
        assert home.load(OTHER, user=user).ingest["model"] == "org/other"
    assert home.find_faults(project=OTHER, user="[ingest]\ntrusted_models = ['org/third']")[0] == REFUSED


LIMITS = ("max_size", "read_timeout", "read_memory", "lock_timeout")


@pytest.mark.parametrize("key", LIMITS)
def test_a_project_can_lower_a_limit_but_not_raise_it(home: Home, key: str) -> None:
    usual = KEYS["ingest"][key].default
    assert home.load(f"[ingest]\n{key} = 10").ingest[key] == 10
    assert home.find_faults(project=f"[ingest]\n{key} = {int(usual) + 1}") == [
        f"rse.toml line 2: a project can lower {key}, but not raise it from {usual:,.15g} to {usual + 1:,.15g}",
        f"if you trust it, set RSE_{key.upper()}, or {key} in USER",
    ]


def test_what_the_user_allows_is_what_a_project_can_not_exceed(home: Home) -> None:
    project, user = "[ingest]\nread_timeout = 60", "[ingest]\nread_timeout = {}"
    assert home.load(project, user.format(90)).ingest["read_timeout"] == 60
    assert len(home.find_faults(project=project, user=user.format(5))) == 2
    # What the user says here and now holds in any case.
    assert home.load(project, user.format(5), read_timeout=70).ingest["read_timeout"] == 70
    assert home.load(project, user.format(5), {"RSE_READ_TIMEOUT": "80"}).ingest["read_timeout"] == 80


def test_a_project_can_not_trust_for_its_user(home: Home) -> None:
    assert home.find_faults(project=OTHER + "trusted_models = ['org/other']")[:2] == [
        "rse.toml line 3: trusted_models is for the user's own file, not for a project",
        REFUSED,
    ]


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_default_model_needs_no_consent(home: Home, model: str) -> None:
    assert home.load(f"[ingest]\nmodel = '{model}'").ingest["model"] == model


def test_a_model_in_the_project_needs_no_consent_and_is_found_from_any_folder(home: Home) -> None:
    (home.root / "models" / "small").mkdir(parents=True)
    settings = home.load("[ingest]\nmodel = 'models/small'")
    assert settings.ingest["model"] == str(home.root / "models" / "small")


@pytest.mark.parametrize("model", ["../outside", "link", "/", "models\\u0000", "a" * 5_000, "rse.toml"])
def test_a_folder_is_in_the_project_only_if_it_truly_lies_there(home: Home, model: str) -> None:
    (home.root.parent / "outside").mkdir()
    (home.root / "link").symlink_to("../outside")
    fault = home.find_faults(project=f'[ingest]\nmodel = "{model}"')[0]
    expected = "model must be a text" if "u0000" in model else "is neither the default one nor a folder in this project"
    assert fault.startswith("rse.toml line 2: ")
    assert expected in fault


def test_a_project_file_that_links_out_of_the_project_is_refused(home: Home) -> None:
    secret = home.root.parent / "secret"
    secret.write_text("[query]\nlimit = 2\n")
    (home.root / "rse.toml").symlink_to(secret)
    assert home.find_faults() == ["rse.toml links to a file outside the project, which is not read"]
    (home.root / "rse.toml").unlink()
    (home.root / "settings.toml").write_text("[query]\nlimit = 2\n")
    (home.root / "rse.toml").symlink_to("settings.toml")
    assert home.load().query["limit"] == 2


def test_a_pipe_in_place_of_a_file_does_not_block(home: Home) -> None:
    os.mkfifo(home.root / "rse.toml")
    assert home.find_faults() == ["rse.toml is not a file"]


def test_no_parser_is_loaded_without_a_file() -> None:
    code = (
        "import sys; from rse_cli.config import load_settings; load_settings(None, {}, {}, {}); "
        "sys.exit('tomllib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
