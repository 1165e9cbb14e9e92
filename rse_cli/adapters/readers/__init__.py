"""Which reader reads a file: by suffix or well-known name, each loaded when it is first needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from rse_cli.core.models import Document
from rse_cli.dataclass import dataclass
from rse_cli.errors import ReadError

__all__ = ["READERS", "ReaderSpec", "find_reader", "is_binary_suffix", "read_document"]


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """A reader and the files that it reads.

    Parameters
    ----------
    name : str
        What the index records, with the version.
    version : int
        Raised whenever the reader gives another document for the same file, so that the file is read anew.
    module, function : str
        Where the reader is, inside this package.
    suffixes : tuple of str
        Lower-case file suffixes, with the dot.
    names : tuple of str
        Lower-case names of files without a telling suffix.
    is_text : bool
        Whether files of this format are text, so that a NUL byte shows that a file is something else.
    """

    name: str
    version: int
    module: str
    function: str
    suffixes: tuple[str, ...]
    names: tuple[str, ...] = ()
    is_text: bool = True


def _split(words: str, prefix: str = "") -> tuple[str, ...]:
    """Return the words of `words`, each behind `prefix`."""
    return tuple(prefix + word for word in words.split())


PLAIN = ReaderSpec(
    "text",
    1,
    "plain",
    "read_plain",
    _split("txt text log srt vtt asc tex", "."),
    _split("readme license licence copying notice authors contributors changelog changes news todo install history"),
)

READERS: tuple[ReaderSpec, ...] = (
    PLAIN,
    ReaderSpec("markdown", 1, "markdown", "read_markdown", _split("md markdown mdown mkd mkdn mdx qmd rmd", ".")),
    ReaderSpec("rst", 1, "restructured", "read_restructured", _split("rst rest", ".")),
    ReaderSpec(
        "source",
        1,
        "source",
        "read_source",
        _split(
            "py pyi pyw pyx js mjs cjs jsx ts mts cts tsx java kt kts scala groovy gradle go rs c h cc cpp cxx hh hpp "
            "hxx m mm cs fs vb swift dart rb rake php pl pm lua r jl ex exs erl hs ml mli clj lisp el scm sh bash zsh "
            "fish ps1 bat cmd sql css scss sass less vue svelte yaml yml toml ini cfg conf properties env "
            "editorconfig xml xsl xsd proto graphql gql tf hcl nix cmake mk asm s zig v sv vhd vhdl f f90 f95 "
            "pas ada sol cu glsl wgsl diff patch",
            ".",
        ),
        _split(
            "makefile gnumakefile dockerfile containerfile cmakelists.txt rakefile gemfile vagrantfile jenkinsfile "
            "procfile justfile .gitignore .gitattributes .dockerignore .rseignore .editorconfig .env .bashrc "
            ".profile .zshrc"
        ),
    ),
    ReaderSpec("notebook", 1, "notebook", "read_notebook", (".ipynb",)),
    ReaderSpec("csv", 1, "tabular", "read_csv", (".csv", ".tsv", ".tab", ".psv")),
    ReaderSpec("jsonl", 1, "tabular", "read_jsonl", (".jsonl", ".ndjson", ".jsonlines")),
    ReaderSpec("json", 1, "tabular", "read_json", (".json", ".json5", ".geojson", ".webmanifest")),
    ReaderSpec("html", 1, "html", "read_html", (".html", ".htm", ".xhtml", ".xht")),
    ReaderSpec("pdf", 3, "pdf", "read_pdf", (".pdf",), is_text=False),
    ReaderSpec("docx", 1, "docx", "read_docx", (".docx", ".docm", ".dotx", ".dotm"), is_text=False),
    ReaderSpec("pptx", 1, "pptx", "read_pptx", (".pptx", ".pptm"), is_text=False),
    ReaderSpec("xlsx", 1, "xlsx", "read_xlsx", (".xlsx", ".xlsm", ".xltx", ".xltm"), is_text=False),
    ReaderSpec("epub", 1, "epub", "read_epub", (".epub",), is_text=False),
)

_BY_SUFFIX = {suffix: spec for spec in READERS for suffix in spec.suffixes}
_BY_NAME = {name: spec for spec in READERS for name in spec.names}

BINARY_SUFFIXES = frozenset(
    _split(
        # images, audio, video, fonts
        "png jpg jpeg jpe gif bmp tif tiff webp ico icns heic heif avif svg svgz psd ai eps raw cr2 nef dng xcf "
        "mp3 wav flac ogg oga opus m4a aac wma aiff mid midi mp4 m4v mkv mov avi webm wmv flv mpg mpeg 3gp ogv "
        "ttf otf woff woff2 eot "
        # archives and packages
        "zip tar gz tgz bz2 tbz xz txz zst lz4 7z rar cab iso dmg deb rpm apk jar war ear whl egg gem crx nupkg "
        # programs and compiled code
        "exe dll so dylib a o obj lib bin elf class pyc pyo pyd wasm node ko sys msi com "
        # data, models, databases
        "safetensors lance parquet feather arrow orc avro npy npz pkl pickle joblib h5 hdf5 mat rds rdata pt pth onnx "
        "gguf ggml ckpt tflite db sqlite sqlite3 db3 mdb accdb dbf idx pack dat swp "
        # office formats that no reader here understands
        "doc xls ppt dot xlt pps odt ods odp odg pages numbers key mobi azw azw3 djvu chm one msg pst xlsb vsd vsdx",
        ".",
    )
)
"""Suffixes of formats without readable text. ``.svg`` is text, but its text is drawing commands."""

SNIFFED_BYTES = 8192
"""How far a NUL byte is looked for: what git and grep take for binary is decided on about as much."""

_LONGEST_REASON = 200
"""Characters of a library's message that are kept: one line of a summary."""


def find_reader(path: Path) -> ReaderSpec:
    """Return the reader for `path`, by its suffix in any case, else by its name, else the plain text reader.

    Parameters
    ----------
    path : Path
        Only the name is looked at.

    Returns
    -------
    ReaderSpec
        One of `READERS`.

    Examples
    --------
    >>> find_reader(Path("docs/Guide.MD")).name, find_reader(Path("Makefile")).name, find_reader(Path("x.unknown")).name
    ('markdown', 'source', 'text')
    """
    by_name = _BY_NAME.get(path.name.lower())
    return by_name or _BY_SUFFIX.get(path.suffix.lower(), PLAIN)


def is_binary_suffix(path: Path) -> bool:
    """Return whether the suffix of `path` alone tells that there is no text to read.

    Examples
    --------
    >>> is_binary_suffix(Path("photo.JPG")), is_binary_suffix(Path("report.pdf"))
    (True, False)
    """
    return path.suffix.lower() in BINARY_SUFFIXES


def read_document(path: Path, data: bytes) -> tuple[str, Document]:
    """Read `data`, the content of `path`, with the reader of its format.

    Parameters
    ----------
    path : Path
        Tells the format; nothing is read from disk.
    data : bytes
        The whole file.

    Returns
    -------
    tuple of str and Document
        The reader's name and version, such as ``"markdown/1"``, and the document.

    Raises
    ------
    ReadError
        With status ``binary`` if it is no text, ``empty`` if it has none but white space, ``failed`` if the reader
        could not make sense of it, or whatever the reader itself says.
    """
    spec = find_reader(path)
    if is_binary_suffix(path):
        raise ReadError("binary", f"{path.suffix.lower()} files hold no text")
    if spec.is_text and is_binary(data):
        raise ReadError("binary", "has NUL bytes, so it is not text")
    try:
        document = _load(spec)(path, data)
    except (ReadError, MemoryError):
        raise
    except Exception as error:  # libraries raise anything at all on broken files
        raise ReadError("failed", f"{spec.name}: {_describe(error)}") from error
    if not document.text or document.text.isspace():
        raise ReadError("empty", "no text")
    return f"{spec.name}/{spec.version}", document


def is_binary(data: bytes) -> bool:
    """Return whether `data` has a NUL byte near its start and is not UTF-16 or UTF-32.

    Examples
    --------
    >>> is_binary(b"GIF89a" + bytes(4)), is_binary("text".encode("utf-16"))
    (True, False)
    """
    head = data[:SNIFFED_BYTES]
    if b"\0" not in head:
        return False
    from rse_cli.adapters.readers.decode import guess_utf16, has_bom

    return not has_bom(head) and guess_utf16(head) is None


def _load(spec: ReaderSpec) -> Callable[[Path, bytes], Document]:
    """Import the reader's module and return its function."""
    module = importlib.import_module(f"{__name__}.{spec.module}")
    reader: Callable[[Path, bytes], Document] = getattr(module, spec.function)
    return reader


def _describe(error: Exception) -> str:
    """Return the first line of an exception's message, or its class where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0][:_LONGEST_REASON] if lines else type(error).__name__
