"""Zip containers and the XML inside them, opened with limits: the files may come from anyone."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from rse_cli.errors import ReadError

# The largest real Office files (decks full of pictures) unpack to about 300 MB.
MAX_UNPACKED_BYTES = 500_000_000
# A presentation of 500 slides has about 3,000 parts.
MAX_ENTRIES = 10_000
# Parsed XML takes five to ten times its size in memory. A sheet of two million cells has about 100 MB of XML.
MAX_XML_BYTES = 150_000_000
# Deflate reaches 1032:1 on zeros; the XML of sheets, the most repetitive of real parts, stays below 60:1.
MAX_RATIO = 200
# Small entries may compress as they like.
MIN_RATIO_BYTES = 10_000_000

# The magic number of OLE compound files: encrypted Office files, and all of Office before 2007.
_OLE_MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
# The stream in which OLE files hold an encrypted package, as their directory spells it ([MS-OFFCRYPTO] 2.3.4.4).
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
# Where a document type must stand if an XML part has one: before the root element, so near the start.
_PROLOGUE_BYTES = 65_536

Element = Any
"""An ``lxml.etree._Element``; lxml has no types of its own and is imported late."""


@contextmanager
def report_broken(kind: str) -> Iterator[None]:
    """Turn what a library raises on a broken file into a ``ReadError``.

    The libraries document no errors: a damaged part ends in KeyError, ValueError, AttributeError, zlib.error and more.

    Parameters
    ----------
    kind : str
        What the file should be, for the message.

    Raises
    ------
    ReadError
        In place of any other exception.
    MemoryError
        Where memory ran out, which says nothing about the file.
    """
    try:
        yield
    except (ReadError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:80]
        if "memory allocation failed" in said.lower():
            # What libxml2 says where Python would raise this.
            raise MemoryError from error
        raise ReadError("failed", f"not a valid {kind} file" + (f": {said}" if said else "")) from error


def check_archive(data: bytes, kind: str = "zip") -> zipfile.ZipFile:
    """Open a zip container whose size unpacked is within bounds.

    The sizes in the directory can be trusted as bounds: `zipfile` never unpacks more of an entry than it says.

    Parameters
    ----------
    data : bytes
        The file.
    kind : str
        What the file should be, for messages: ``DOCX``.

    Returns
    -------
    zipfile.ZipFile
        The open container.

    Raises
    ------
    ReadError
        ``encrypted`` if a password is needed; ``failed`` if the file is no zip container or too large unpacked.
    """
    if data.startswith(_OLE_MAGIC):
        if _ENCRYPTED_PACKAGE in data:
            raise ReadError("encrypted", "needs a password")
        raise ReadError("failed", f"an Office file from before 2007, not a valid {kind} file")
    with report_broken(kind):
        archive = zipfile.ZipFile(io.BytesIO(data))
    entries = archive.infolist()
    if any(entry.flag_bits & 1 for entry in entries):
        raise ReadError("encrypted", "needs a password")
    if len(entries) > MAX_ENTRIES:
        raise ReadError("failed", f"holds {len(entries):,} parts, more than {MAX_ENTRIES:,}")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED_BYTES:
        raise ReadError("failed", f"unpacks to {unpacked // 10**6:,} MB, more than {MAX_UNPACKED_BYTES // 10**6:,} MB")
    for entry in entries:
        _check_entry(entry)
    return archive


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse an entry that unpacks like a bomb, or XML too large to parse."""
    if entry.file_size > max(MIN_RATIO_BYTES, MAX_RATIO * entry.compress_size):
        raise ReadError("failed", f"a part unpacks to over {MAX_RATIO} times its size")
    if _is_xml(entry.filename) and entry.file_size > MAX_XML_BYTES:
        raise ReadError(
            "failed", f"holds {entry.file_size // 10**6:,} MB of XML, more than {MAX_XML_BYTES // 10**6:,} MB"
        )


def _is_xml(name: str) -> bool:
    return name.lower().endswith((".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm"))


def refuse_doctypes(archive: zipfile.ZipFile) -> None:
    """Refuse an Office file with a document type in its XML, the way to entity bombs and to other files.

    Office never writes one: Open Packaging forbids it (ECMA-376 part 2, 9.1.3). The parsers behind it are the second
    line: python-docx, python-pptx and openpyxl parse with ``resolve_entities=False``, and openpyxl's sheets go through
    expat, which resolves no external entity and stops at an amplification of 100.

    Raises
    ------
    ReadError
        If a part has a document type.
    """
    for entry in archive.infolist():
        if _is_xml(entry.filename):
            with archive.open(entry) as part:
                prologue = part.read(_PROLOGUE_BYTES)
            # Dropping zeros reads UTF-16 as well.
            if b"<!DOCTYPE" in prologue.replace(b"\0", b""):
                raise ReadError("failed", "holds a document type, which no Office file has")


def parse_xml(data: bytes) -> Element:
    """Parse XML without entities, external files or network, and without comments.

    Raises
    ------
    lxml.etree.XMLSyntaxError
        If it isn't well-formed, or nested deeper than 256 elements.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )
    return etree.fromstring(data, parser)


def local_name(element: Element) -> str:
    """Return the tag of `element` without its namespace; Strict and Transitional Open XML differ only in that."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def get_attribute(element: Element | None, name: str) -> str | None:
    """Return an attribute by its name without namespace; None also for no element."""
    if element is not None:
        for key, value in element.attrib.items():
            if key.rpartition("}")[2] == name:
                return str(value)
    return None


def find_child(element: Element | None, *names: str) -> Element | None:
    """Return the first descendant reached by going down `names`, one child each, or None."""
    for name in names:
        if element is None:
            return None
        element = next((child for child in element if local_name(child) == name), None)
    return element


def resolve_part(base: str, target: str) -> str:
    """Return the name in the container of `target` as the part `base` refers to it.

    Examples
    --------
    >>> resolve_part("OEBPS/content.opf", "text/ch%201.xhtml#start")
    'OEBPS/text/ch 1.xhtml'
    """
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/")


def list_relations(archive: zipfile.ZipFile, part: str) -> list[tuple[str, str]]:
    """Return the relationships of an Open Packaging part, as pairs of kind and target.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The container.
    part : str
        Its name; empty for the package itself.

    Returns
    -------
    list of (str, str)
        The last word of the relationship's type, such as ``styles``, and the part's name; parts that don't exist and
        external targets are left out.
    """
    name = posixpath.join(posixpath.dirname(part), "_rels", posixpath.basename(part) + ".rels")
    names = set(archive.namelist())
    if name not in names:
        return []
    relations = []
    for relation in parse_xml(archive.read(name)):
        target = resolve_part(part, get_attribute(relation, "Target") or "")
        if target in names and get_attribute(relation, "TargetMode") != "External":
            relations.append(((get_attribute(relation, "Type") or "").rpartition("/")[2], target))
    return relations
