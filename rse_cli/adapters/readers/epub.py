"""EPUB books: the chapters in reading order, each read as the web page that it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

from rse_cli.adapters.readers.archive import (
    Element,
    check_archive,
    find_child,
    get_attribute,
    local_name,
    parse_xml,
    report_broken,
    resolve_part,
)
from rse_cli.adapters.readers.building import TextBuilder, fold_spaces
from rse_cli.adapters.readers.html import append_markup
from rse_cli.adapters.readers.markup import decode_markup, parse_markup
from rse_cli.core.models import Document
from rse_cli.errors import ReadError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})


def read_epub(path: Path, data: bytes) -> Document:  # noqa: ARG001
    """Read an EPUB book.

    Parameters
    ----------
    path : Path
        Not looked at.
    data : bytes
        The file's content.

    Returns
    -------
    Document
        The chapters in the order of the spine, without tables of contents, titled by ``dc:title``.

    Raises
    ------
    ReadError
        ``encrypted`` if the chapters are under DRM; ``failed`` if the file is broken; ``empty`` without text.
    """
    archive = check_archive(data, "EPUB")
    builder = TextBuilder()
    with report_broken("EPUB"):
        package_name = _find_package(archive)
        package = parse_xml(archive.read(package_name))
        chapters = _list_chapters(package, package_name)
        if not _list_encrypted(archive).isdisjoint(chapters):
            raise ReadError("encrypted", "protected by DRM")
        # Books made on file systems that ignore case name parts in another case than they have.
        names = {name.lower(): name for name in archive.namelist()}
        for chapter in chapters:
            if name := names.get(chapter.lower()):
                append_markup(builder, parse_markup(decode_markup(archive.read(name)), as_xml=True))
        title = getattr(find_child(package, "metadata", "title"), "text", None)
        if title is None:
            # EPUB 2 files of the first years wrap the Dublin Core elements.
            title = getattr(find_child(package, "metadata", "dc-metadata", "title"), "text", None)
    return builder.document(fold_spaces(title or "") or builder.first_heading())


def _find_package(archive: zipfile.ZipFile) -> str:
    """Return the name of the package document, that the container or, without one, the suffix tells."""
    names = archive.namelist()
    if _CONTAINER in names:
        rootfile = find_child(parse_xml(archive.read(_CONTAINER)), "rootfiles", "rootfile")
        full_path = get_attribute(rootfile, "full-path")
        if full_path:
            return resolve_part("", full_path)
    package = next((name for name in names if name.lower().endswith(".opf")), None)
    if package is None:
        raise ReadError("failed", "not a valid EPUB file: no package document")
    return package


def _list_chapters(package: Element, package_name: str) -> list[str]:
    """Return the parts of the spine in order, each once, without those that are tables of contents."""
    pages: dict[str, str] = {}
    contents = set()
    for item in _list_children(package, "manifest"):
        if local_name(item) == "item" and get_attribute(item, "media-type") in _PAGE_TYPES:
            target = resolve_part(package_name, get_attribute(item, "href") or "")
            pages[get_attribute(item, "id") or ""] = target
            if "nav" in (get_attribute(item, "properties") or "").split():
                contents.add(target)
    for reference in _list_children(package, "guide"):
        if get_attribute(reference, "type") == "toc":
            contents.add(resolve_part(package_name, get_attribute(reference, "href") or ""))
    spine = [get_attribute(reference, "idref") or "" for reference in _list_children(package, "spine")]
    chapters = list(dict.fromkeys(pages[idref] for idref in spine if idref in pages))
    # A book in a single file names that file as its table of contents, too.
    return [chapter for chapter in chapters if chapter not in contents] or chapters


def _list_children(package: Element, name: str) -> list[Element]:
    """Return the elements in a section of the package document, none if it lacks the section."""
    section = find_child(package, name)
    return [] if section is None else list(section)


def _list_encrypted(archive: zipfile.ZipFile) -> set[str]:
    """Return the parts that are encrypted; fonts often are, by obfuscation, while the text is free."""
    if _ENCRYPTION not in archive.namelist():
        return set()
    root = parse_xml(archive.read(_ENCRYPTION))
    references = (element for element in root.iter() if local_name(element) == "CipherReference")
    return {resolve_part("", get_attribute(reference, "URI") or "") for reference in references}
