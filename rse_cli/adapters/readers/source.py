"""Source code: definitions at the top level begin chunks and are headings."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from rse_cli.adapters.readers.decode import decode
from rse_cli.adapters.readers.plain import iterate_lines
from rse_cli.core.models import Document, Heading

_LONGEST_LINE = 300
"""Characters of a line that are looked at: enough for any definition, and no pattern meets an endless line."""

_LARGEST_PARSED = 2_000_000
"""Characters of Python that are parsed: the tree takes about 100 times the memory of the text."""

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|sealed|partial|async|unsafe"
    r"|open|override|virtual|inline|data|case|implicit|readonly|extern|const|suspend|pub(?:\([^)]*\))?|extern \"C\""
    r"|fileprivate|indirect|annotation|expect|actual|inner|value) +)*"
)
_PATTERNS = {
    # at the start of an unindented line; a definition is shown as kind and name, or as the name alone
    "python": r"(?:async +)?(?P<kind>class|def) +(?P<name>\w+)",
    "script": _MODIFIERS + r"(?:(?P<kind>function|class|interface|enum|namespace|module|type)\b *\*? *"
    r"(?P<name>[\w$.]+)"
    r"|(?:const|let|var) +(?P<function>[\w$]+)(?: *:[^=]+)? *= *(?:async +)?(?:function\b|\(|[\w$]+ *=>))",
    "jvm": _MODIFIERS + r"(?P<kind>class|@?interface|enum class|enum|record|struct|object|trait|fun|def|namespace"
    r"|delegate|func|protocol|extension|actor|type|typealias|mixin) +(?P<name>(?:<[^>]*> *)?[\w.`]+)",
    "go": r"(?P<kind>func|type) +(?:\((?:\w+ +)?\*?(?P<owner>\w+)[^)]*\) *)?(?P<name>\w+)",
    "rust": _MODIFIERS
    + r"(?:(?P<kind>fn|struct|enum|trait|union|mod|type|macro_rules!) +(?P<name>\w+)|(?P<function>impl\b[^{]*))",
    "c": r"(?!(?:if|for|while|switch|return|else|do|case|goto|typedef +(?!struct|enum|union))\b)"
    r"(?:(?:typedef +|static +|template *<.*> *)*(?P<kind>struct|class|enum class|enum|union|namespace) +"
    r"(?P<name>\w+)[^;()]*$"
    r"|(?:[A-Za-z_][\w:<>,*&~\[\] ]*[ *&])?(?P<function>~?[A-Za-z_][\w:~]*|operator *\S+) *\([^;]*$)",
    "ruby": r"(?P<kind>class|module|def) +(?P<name>[\w:.?!]+)",
    "php": _MODIFIERS + r"(?P<kind>function|class|interface|trait|enum|namespace) +&?(?P<name>[\w\\]+)",
    "shell": r"(?:(?P<kind>function) +(?P<name>[\w:.-]+)|(?P<function>[\w:.-]+) *\( *\))",
    "powershell": r"(?i:(?P<kind>function|class|filter|workflow)) +(?P<name>[\w:-]+)",
    "sql": r"(?i:create +(?:or +replace +)?(?:global +|local +|temp(?:orary)? +|unique +|materialized +|external +)*"
    r"(?P<kind>table|view|function|procedure|index|trigger|type|schema|sequence|database|package) +"
    r"(?:if +not +exists +)?(?P<name>[\w.\"`\[\]]+))",
    "lua": r"(?:local +)?(?P<kind>function) +(?P<name>[\w.:]+)",
    "perl": r"(?P<kind>sub|package) +(?P<name>[\w:]+)",
    "r": r"(?P<function>[\w.]+) *(?:<-|=) *function\b",
    "julia": r"(?P<kind>function|struct|mutable struct|abstract type|module|macro) +(?P<name>[\w.!]+)",
    "elixir": r"(?P<kind>defmodule|defprotocol|defimpl) +(?P<name>[\w.]+)",
    "lisp": r"\((?P<kind>def[\w*-]*) +(?P<name>[^\s()]+)",
    "haskell": r"(?:(?P<kind>data|newtype|class|type|instance|module) +(?P<name>[A-Z][\w.' ]*)"
    r"|(?P<function>[a-z]\w*'*) *::)",
    "make": r"(?P<function>[\w/%$(){}-][\w./%$(){}-]*) *:(?!=)",
    "proto": r"(?P<kind>message|service|enum|type|input|interface|union|scalar|extend) +(?P<name>\w+)",
    "terraform": r"(?P<kind>resource|data|module|variable|output|provider) +(?P<name>\"[^\"]*\"(?: +\"[^\"]*\")?)",
    "sections": r"\[\[?(?P<function>[^\[\]]+)\]",
}
_LANGUAGES = {
    "python": "py pyi pyw pyx",
    "script": "js mjs cjs jsx ts mts cts tsx",
    "jvm": "java kt kts scala groovy cs swift dart fs vb",
    "go": "go",
    "rust": "rs",
    "c": "c h cc cpp cxx hh hpp hxx m mm cu",
    "ruby": "rb rake",
    "php": "php",
    "shell": "sh bash zsh fish",
    "powershell": "ps1",
    "sql": "sql",
    "lua": "lua",
    "perl": "pl pm",
    "r": "r",
    "julia": "jl",
    "elixir": "ex exs",
    "lisp": "clj lisp el scm",
    "haskell": "hs",
    "make": "mk makefile gnumakefile",
    "proto": "proto graphql gql",
    "terraform": "tf hcl",
    "sections": "toml ini cfg conf editorconfig",
}
_LANGUAGE_OF = {name: language for language, names in _LANGUAGES.items() for name in names.split()}

_LEADS = ("//", "@", "--", ";", "#[", "template", "[[")
_LEADS_OF = {"c": _LEADS, "sections": ("#", ";")}
"""How a line begins that belongs to the definition right below it: comments, decorators, annotations, attributes. In C,
``#`` begins a directive; in TOML, ``[[`` a section."""


def read_source(path: Path, data: bytes) -> Document:
    """Read source code or configuration: verbatim, with a break and a heading at every definition.

    Parameters
    ----------
    path : Path
        Its suffix or name tells the language.
    data : bytes
        The file.

    Returns
    -------
    Document
        Without title. Python classes and functions are of level 1, methods of level 2; elsewhere every definition
        that isn't indented, and every section of TOML and INI, is of level 1. Comments and decorators right above a
        definition belong to it. Languages without a known pattern have no headings.
    """
    text = decode(data)
    language = _LANGUAGE_OF.get(path.suffix.lower().lstrip(".") or path.name.lower())
    headings = None
    if language == "python" and len(text) <= _LARGEST_PARSED:
        headings = parse_python(text)
    if headings is None and language is not None:
        headings = match_definitions(text, language)
    headings = headings or []
    breaks = tuple(heading.start_char for heading in headings if heading.level == 1)
    return Document(text=text, headings=tuple(headings), breaks=breaks, verbatim=True)


def parse_python(text: str) -> list[Heading] | None:
    r"""Find the classes and functions of a Python text, and what classes hold, however deep.

    Returns
    -------
    list of Heading, or None
        None if the text is no valid Python.

    Examples
    --------
    >>> [(h.level, h.text) for h in parse_python("class A:\n    async def b(self): ...\ndef c(): ...\n")]
    [(1, 'class A'), (2, 'def b'), (1, 'def c')]
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = list(iterate_lines(text))
    headings = []
    for node, level in _iterate_definitions(body, level=1):
        at = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        indent = text[lines[at][0] : lines[at][0] + node.col_offset]
        while at > 0 and text.startswith(indent + "#", lines[at - 1][0]):
            at -= 1
        kind = "class" if isinstance(node, ast.ClassDef) else "def"
        headings.append(Heading(lines[at][0], level, f"{kind} {node.name}"))
    return sorted(headings, key=lambda heading: heading.start_char)


_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _iterate_definitions(body: Sequence[ast.AST], level: int) -> Iterator[tuple[_Definition, int]]:
    """Yield the definitions in a body with their level: those under ``if`` and ``try`` and in classes, too."""
    for node in body:
        if isinstance(node, _Definition):
            yield node, level
        if isinstance(node, ast.ClassDef):
            yield from _iterate_definitions(node.body, level + 1)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "handlers", "orelse", "finalbody"):
                yield from _iterate_definitions(getattr(node, part, []), level)
        elif isinstance(node, ast.ExceptHandler):
            yield from _iterate_definitions(node.body, level)


def match_definitions(text: str, language: str) -> list[Heading]:
    r"""Find the definitions that stand on unindented lines, by the pattern of their language.

    Parameters
    ----------
    text : str
        The file.
    language : str
        A key of the table of patterns.

    Examples
    --------
    >>> match_definitions("package a\n\n// Open it.\nfunc (s *Store) Open() {\n", "go")
    [Heading(start_char=11, level=1, text='func Store.Open')]
    """
    pattern = re.compile(_PATTERNS[language])
    leads = _LEADS_OF.get(language, (*_LEADS, "#"))
    headings: list[Heading] = []
    lead: int | None = None
    is_comment = False
    for start, end, _ in iterate_lines(text):
        shown = text[start : min(end, start + _LONGEST_LINE)]
        if is_comment:
            is_comment = text.find("*/", start, end) < 0
        elif shown.startswith("/*"):
            lead = start if lead is None else lead
            is_comment = text.find("*/", start + 2, end) < 0
        elif shown.startswith(leads):
            lead = start if lead is None else lead
        elif shown[:1].isspace() or not shown:
            lead = None
        else:
            if match := pattern.match(shown):
                headings.append(Heading(start if lead is None else lead, 1, _name_definition(match)))
            lead = None
    return headings


def _name_definition(match: re.Match[str]) -> str:
    """Return how a definition is shown."""
    found = match.groupdict()
    if found.get("function"):
        return " ".join(found["function"].split())
    kind = found["kind"].lower()
    name = f"{found['owner']}.{found['name']}" if found.get("owner") else found["name"]
    return " ".join(f"{kind} {name}".split())
