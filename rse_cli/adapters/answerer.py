"""An answer in words from an OpenAI-compatible server, through the package `openai`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rse_cli.core.context import Prompt
from rse_cli.dataclass import dataclass
from rse_cli.errors import AnswerError

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""The package's own default; named here because the package would also take others from the environment."""

DEFAULT_TIMEOUT = 60.0
"""Seconds. A small model on a CPU takes about so long to read 12,000 tokens before its first word."""

_PLACEHOLDER_KEY = "no-key-given"
"""Servers on one's own machine want no key, but the package wants one."""

_SECRET_CHARS = 8
"""Shorter keys are no secrets but words to satisfy a program, and would make holes in messages."""

_MESSAGE_CHARS = 200

_CHECK_ADDRESS = "OPENAI_BASE_URL must be the address of an OpenAI-compatible API, which often ends in /v1"

_CUT_OFF = {
    None: "the server ended it early",
    "length": "it reached the model's limit of tokens",
    "content_filter": "the server's content filter ended it",
}
"""Values of `finish_reason` that mean that there would have been more."""


@dataclass(frozen=True, slots=True)
class OpenAIAnswerer:
    """An `Answerer` around a client of the package `openai`.

    Parameters
    ----------
    client : openai.OpenAI
        With address, key and time-out.
    model : str
        What the server calls the model.
    address : str
        The server, for messages.
    timeout : float
        Seconds without a byte from the server before it counts as gone.
    """

    client: Any
    model: str
    address: str
    timeout: float

    def stream(self, prompt: Prompt) -> Iterator[str]:
        """Yield the answer piece by piece, as the model writes it.

        Parameters
        ----------
        prompt : Prompt
            From `compose_prompt`; sent with temperature 0.

        Yields
        ------
        str
            Not empty. What a model writes is as little to be trusted on a terminal as a file.

        Raises
        ------
        AnswerError
            If the server can't be reached, refuses, takes too long, or ends before the answer does; what was yielded by
            then stands.
        """
        reason, written = None, False
        try:
            for chunk in self._open_stream(prompt):
                for choice in chunk.choices or ():
                    reason = choice.finish_reason or reason
                    if choice.delta and choice.delta.content:
                        written = True
                        yield choice.delta.content
        except Exception as error:  # the package's own, and what decoding raises when a server sends nonsense
            raise AnswerError(self._explain_failure(error)) from None
        if not written:
            raise AnswerError(f"{self.address} sent an empty answer: {_CHECK_ADDRESS}")
        if reason in _CUT_OFF:
            raise AnswerError(f"the answer of {self.model} is not whole: {_CUT_OFF[reason]}")

    def _open_stream(self, prompt: Prompt) -> Iterator[Any]:
        """Send the prompt and yield what comes; the connection is closed when the caller stops."""
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        chat = self.client.chat.completions
        with chat.create(model=self.model, messages=messages, temperature=0, stream=True) as answer:
            yield from answer

    def _explain_failure(self, error: Exception) -> str:
        """Return one line that says what went wrong, and what to do."""
        import openai

        said = self._quote_reason(error)
        if isinstance(error, openai.APITimeoutError):
            return f"{self.address} sent nothing for {self.timeout:g} s: it is overloaded, or no such server"
        if isinstance(error, openai.APIConnectionError):
            return f"no connection to {self.address} ({said}): is the server running? {_CHECK_ADDRESS}"
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return f"{self.address} refuses the key: check OPENAI_API_KEY"
        if isinstance(error, openai.NotFoundError):
            return f"{self.address} knows no model {self.model} ({said}): check --llm; {_CHECK_ADDRESS}"
        if isinstance(error, openai.APIStatusError):
            return f"{self.address} answered with status {error.status_code} ({said})"
        if isinstance(error, openai.APIError):
            return f"{self.address} broke the answer off ({said})"
        return f"{self.address} sent what is no answer ({said}): {_CHECK_ADDRESS}"

    def _quote_reason(self, error: Exception) -> str:
        """Return what the server or the system said, on one short line, without the key."""
        body = getattr(error, "body", None)
        if isinstance(body, dict):
            body = body.get("message") or body.get("error") or body.get("detail")
        text = str(body or error.__cause__ or error) or type(error).__name__
        if len(self.client.api_key) >= _SECRET_CHARS:
            text = text.replace(self.client.api_key, "…")
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= _MESSAGE_CHARS else line[:_MESSAGE_CHARS].rstrip() + "…"


def load_answerer(
    model: str | None, base_url: str | None, api_key: str | None, timeout: float = DEFAULT_TIMEOUT
) -> OpenAIAnswerer:
    """Make ready to ask a language model; nothing is sent yet.

    Parameters
    ----------
    model : str or None
        What the server calls it.
    base_url : str or None
        Address of the API, such as ``http://localhost:11434/v1``. None or empty: OpenAI's own, if there is a key.
    api_key : str or None
        None or empty for servers that want none.
    timeout : float
        Seconds without a byte from the server before it counts as gone. Nothing is tried twice.

    Returns
    -------
    OpenAIAnswerer
        Ready to stream.

    Raises
    ------
    AnswerError
        If model, or address and key, are missing, one of them can't be used, or the package isn't installed.
    """
    if not model:
        raise AnswerError("an answer needs a language model: name it with --llm")
    key = (api_key or "").strip()
    if not base_url and not key:
        raise AnswerError("an answer needs a server: set OPENAI_BASE_URL, and OPENAI_API_KEY if it wants a key")
    if not key.isascii() or not key.isprintable():
        # No header can hold it, and the error that says so would show it.
        raise AnswerError("OPENAI_API_KEY holds a line end or another character that no key has")
    url = (base_url or DEFAULT_BASE_URL).strip()
    address = _describe_address(url)
    try:
        from openai import OpenAI
    except ImportError as error:
        raise AnswerError(f"an answer needs the package openai ({error}): pip install 'rse-cli[answer]'") from None
    client = OpenAI(api_key=key or _PLACEHOLDER_KEY, base_url=url, timeout=timeout, max_retries=0)
    return OpenAIAnswerer(client, model, address, timeout)


def _describe_address(url: str) -> str:
    """Return an address as it may be shown: without user, password and query.

    Raises
    ------
    AnswerError
        If it is no address of a web server.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or not url.isprintable():
        raise AnswerError("OPENAI_BASE_URL is no address of a server: it looks like http://localhost:8000/v1")
    shown = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, f"{shown}:{port}" if port else shown, parts.path.rstrip("/"), "", ""))
