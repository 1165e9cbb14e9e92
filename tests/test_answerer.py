"""Answers: streamed from an OpenAI-compatible server; every way of failing is one line that says what to do."""

import json
import socket
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rse_cli.adapters.answerer import AnswerError, load_answerer
from rse_cli.core.context import Prompt

pytest.importorskip("openai", reason="the package openai isn't installed: pip install 'rse-cli[answer]'")

PROMPT = Prompt(system="Answer from the documents.", user="Documents. Question?")
KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """Nothing of the user's environment decides, and no proxy stands before the server of the test."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


class Server(ThreadingHTTPServer):
    """Answers every request by `reply`, and keeps what was asked."""

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.asked = []
        self.closed_early = threading.Event()
        self.ended = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers, body))
        self.server.reply(self)

    def send(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def send_event(self, data):
        self.wfile.write(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *arguments):
        """Keep the test's stderr clean."""


@contextmanager
def serve(reply):
    server = Server(reply)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()


def make_chunk(text, reason=None):
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}


def write_answer(*texts, reason="stop"):
    """Make a reply that streams `texts` as servers do: a role first, the reason last, then the usage."""

    def reply(handler):
        handler.begin_stream()
        first = make_chunk(None)
        first["choices"][0]["delta"] = {"role": "assistant", "content": ""}
        for event in (first, *map(make_chunk, texts), make_chunk(None, reason)):
            handler.send_event(event)
        handler.send_event({**make_chunk(None), "choices": [], "usage": {"total_tokens": 3}})
        handler.send_event("[DONE]")

    return reply


def refuse(status, body, kind="application/json"):
    return lambda handler: handler.send(status, body, kind)


def fail_to_answer(server_url, **changes):
    """Return the message of the failure, having checked that it is one line without the key."""
    given = {"model": "tiny", "base_url": server_url, "api_key": KEY, "timeout": 5.0, **changes}
    with pytest.raises(AnswerError) as caught:
        list(load_answerer(**given).stream(PROMPT))
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return message


# --- answers ---


def test_the_answer_comes_in_the_pieces_that_the_server_sends():
    with serve(write_answer("It ebbs ", "at six ", "[1].")) as server:
        answerer = load_answerer("tiny", server.url, KEY)
        assert list(answerer.stream(PROMPT)) == ["It ebbs ", "at six ", "[1]."]


def test_the_prompt_is_sent_as_it_is_with_temperature_0_and_the_key():
    with serve(write_answer("Yes.")) as server:
        list(load_answerer("tiny", server.url, f" {KEY}\n").stream(PROMPT))
    ((path, headers, body),) = server.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Answer from the documents."},
            {"role": "user", "content": "Documents. Question?"},
        ],
        "temperature": 0,
        "stream": True,
    }


def test_each_piece_is_handed_on_before_the_next_is_written():
    read = threading.Event()

    def reply(handler):
        handler.begin_stream()
        handler.send_event(make_chunk("first"))
        assert read.wait(5)
        handler.send_event(make_chunk("second", "stop"))

    with serve(reply) as server:
        pieces = load_answerer("tiny", server.url, KEY).stream(PROMPT)
        assert next(pieces) == "first"
        read.set()
        assert list(pieces) == ["second"]


def test_a_server_without_keys_needs_none():
    with serve(write_answer("Yes.")) as server:
        assert list(load_answerer("tiny", f"{server.url}/", None).stream(PROMPT)) == ["Yes."]


def test_the_connection_is_closed_when_the_caller_has_enough():
    def reply(handler):
        handler.begin_stream()
        try:
            while not handler.server.ended.wait(0.01):
                handler.send_event(make_chunk("more " * 100))
        except OSError:
            handler.server.closed_early.set()

    with serve(reply) as server:
        pieces = load_answerer("tiny", server.url, KEY).stream(PROMPT)
        next(pieces)
        pieces.close()
        assert server.closed_early.wait(5)


# --- failures ---


def test_a_wrong_key_is_said_so_without_showing_it():
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    with serve(refuse(401, body)) as server:
        assert fail_to_answer(server.url) == f"{server.url} refuses the key: check OPENAI_API_KEY"
        assert len(server.asked) == 1


def test_an_unknown_model_is_named_with_what_the_server_says():
    with serve(refuse(404, {"error": {"message": "model 'tiny' not found, try pulling it first"}})) as server:
        assert fail_to_answer(server.url) == (
            f"{server.url} knows no model tiny (model 'tiny' not found, try pulling it first): check --llm; "
            "OPENAI_BASE_URL must be the address of an OpenAI-compatible API, which often ends in /v1"
        )


def test_a_server_that_hangs_is_given_up_after_the_time_out():
    with serve(lambda handler: handler.server.ended.wait(10)) as server:
        message = fail_to_answer(server.url, timeout=0.2)
        assert message == f"{server.url} sent nothing for 0.2 s: it is overloaded, or no such server"


def test_a_server_that_hangs_in_the_middle_leaves_what_was_written():
    def reply(handler):
        handler.begin_stream()
        handler.send_event(make_chunk("It ebbs "))
        handler.server.ended.wait(10)

    with serve(reply) as server:
        pieces = load_answerer("tiny", server.url, KEY, timeout=2).stream(PROMPT)
        assert next(pieces) == "It ebbs "
        with pytest.raises(AnswerError, match=r"sent nothing for 2 s"):
            next(pieces)


def test_a_server_that_is_not_there_is_said_so():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    message = fail_to_answer(url)
    assert message.startswith(f"no connection to {url} (")
    assert "refused" in message
    assert "is the server running?" in message


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"error": {"message": "context length\nexceeded"}}, "answered with status 400 (context length exceeded)"),
        (429, {"error": {"message": "quota"}}, "answered with status 429 (quota)"),
        (503, {"detail": "loading"}, "answered with status 503 (loading)"),
        (500, b"\x1b[31mboom", "answered with status 500 ([31mboom)"),
        (500, {"error": {"message": f"you sent {KEY}"}}, "answered with status 500 (you sent …)"),
    ],
)
def test_any_other_refusal_is_one_line_with_the_servers_own_words(status, body, expected):
    with serve(refuse(status, body)) as server:
        assert fail_to_answer(server.url) == f"{server.url} {expected}"


def test_the_servers_own_words_are_cut_short():
    with serve(refuse(500, {"error": {"message": "x" * 5000}})) as server:
        assert len(fail_to_answer(server.url)) < 300


def test_an_error_within_the_stream_is_an_error():
    def reply(handler):
        handler.begin_stream()
        handler.send_event(make_chunk("It "))
        handler.send_event({"error": {"message": "out of memory"}})

    with serve(reply) as server:
        assert fail_to_answer(server.url) == f"{server.url} broke the answer off (out of memory)"


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("length", "it reached the model's limit of tokens"),
        ("content_filter", "the server's content filter ended it"),
        (None, "the server ended it early"),
    ],
)
def test_an_answer_that_is_cut_off_is_no_whole_answer(reason, why):
    with serve(write_answer("It ebbs ", reason=reason)) as server:
        assert fail_to_answer(server.url) == f"the answer of tiny is not whole: {why}"


def test_an_answer_without_a_word_is_an_error():
    with serve(write_answer()) as server:
        assert "sent an empty answer" in fail_to_answer(server.url)


def test_a_page_of_another_server_is_no_answer():
    with serve(refuse(200, b"<html>Welcome</html>", "text/html")) as server:
        assert "an OpenAI-compatible API, which often ends in /v1" in fail_to_answer(server.url)


def test_nonsense_within_the_stream_is_no_answer():
    def reply(handler):
        handler.begin_stream()
        handler.send_event("{nonsense")

    with serve(reply) as server:
        assert "sent what is no answer" in fail_to_answer(server.url)


# --- what must be given ---


def test_without_a_model_there_is_no_answer():
    assert fail_to_answer("http://127.0.0.1:1/v1", model="") == "an answer needs a language model: name it with --llm"


def test_without_address_and_key_nothing_is_sent_anywhere():
    assert fail_to_answer(None, api_key="") == (
        "an answer needs a server: set OPENAI_BASE_URL, and OPENAI_API_KEY if it wants a key"
    )


def test_a_key_alone_means_the_service_that_the_variable_is_named_after():
    answerer = load_answerer("tiny", None, KEY)
    assert answerer.address == "https://api.openai.com/v1"
    assert str(answerer.client.base_url) == "https://api.openai.com/v1/"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://[::1", "http://h:port/", "a b"])
def test_an_address_that_is_none_is_refused(url):
    assert fail_to_answer(url).startswith("OPENAI_BASE_URL is no address of a server")


def test_a_password_in_the_address_is_not_shown():
    answerer = load_answerer("tiny", "https://me:secret@[::1]:8000/v1/?token=secret", KEY)
    assert answerer.address == "https://[::1]:8000/v1"


def test_a_key_that_no_header_can_hold_is_one_line_without_it():
    for key in ("sk-secret\nkey", "sk-sécret"):
        message = fail_to_answer("http://127.0.0.1:1/v1", api_key=key)
        assert message == "OPENAI_API_KEY holds a line end or another character that no key has"


def test_a_missing_package_is_said_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    assert "pip install 'rse-cli[answer]'" in fail_to_answer("http://127.0.0.1:1/v1")
