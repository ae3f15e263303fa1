"""A local news server: pages, feeds and sitemaps, some of which are slow, broken or hostile."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = (
    "The match in the old stadium ended late because the floodlights failed twice and the players "
    "waited in the tunnel until an engineer had found the reason in a cellar under the stands."
)


def page(title, text, *, head="", section="Sport"):
    """Return a page of HTML with a menu around an article."""
    paragraphs = "".join(f"<p>{part}</p>" for part in text.split("\n"))
    return (
        f"<!DOCTYPE html><html lang='en-GB'><head><title>{title}</title>"
        f"<meta name='author' content='Jane Doe'>"
        f"<meta property='article:published_time' content='2026-11-03T08:00:00+00:00'>"
        f"<meta property='article:section' content='{section}'>{head}</head><body>"
        f"<nav><a href='/'>Home of the menu</a></nav>"
        f"<article><h1>{title}</h1>{paragraphs}</article>"
        f"<footer>Copyright of the footer</footer></body></html>"
    )


def article(k, extra=""):
    """Return a page whose words no other article has."""
    own = " ".join(f"{WORDS.split()[(k * 7 + n) % 30]} {chr(97 + k % 26) * 4}" for n in range(30))
    return page(f"Article {chr(97 + k % 26) * 3}", f"{own}.\nMore about it: {own[::-1]}. {extra}")


def rss(items, *, title="News"):
    """Return a feed of pairs of address and category."""
    entries = "".join(
        f"<item><title>Listed {n}</title><link>{link}</link><category>{category}</category>"
        f"<pubDate>Mon, 02 Nov 2026 1{n % 10}:00:00 +0100</pubDate></item>"
        for n, (link, category) in enumerate(items)
    )
    channel = f"<channel><title>{title}</title>{entries}</channel>"
    return f"<?xml version='1.0'?><rss version='2.0'>{channel}</rss>"


@dataclass
class Answer:
    """What the server answers for a path."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict = field(default_factory=dict)
    etag: str | None = None
    seconds: float = 0.0  # before the answer
    drip: float = 0.0  # seconds between two bytes
    fails: int = 0  # how often it answers with 503 first


class NewsServer:
    """A server on a loopback address; ``answers`` maps paths to what it answers."""

    def __init__(self):
        self.answers, self.requests, self.log = {}, Counter(), []
        self.running = self.most_running = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):  # the name that http.server calls
                with outer.lock:
                    outer.running += 1
                    outer.most_running = max(outer.most_running, outer.running)
                    outer.requests[self.path] += 1
                    outer.log.append((time.monotonic(), self.path, dict(self.headers)))
                try:
                    self.answer()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with outer.lock:
                        outer.running -= 1

            def answer(self):
                found = outer.answers.get(self.path, Answer(b"gone", status=404))
                if found.fails:
                    found.fails -= 1
                    found = Answer(b"busy", status=503)
                time.sleep(found.seconds)
                is_same = found.etag is not None and self.headers["If-None-Match"] == found.etag
                self.send_response(304 if is_same else found.status)
                self.send_header("Content-Type", found.kind)
                if found.etag is not None:
                    self.send_header("ETag", found.etag)
                for name, value in found.headers.items():
                    self.send_header(name, value)
                body = b"" if is_same else found.body
                if "Content-Length" not in found.headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if not found.drip:
                    self.wfile.write(body)
                    return
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(found.drip)

            def log_message(self, *_):
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def root(self):
        """The address of the server."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def put(self, path, body, **settings):
        """Answer a path with a text."""
        content = body.encode() if isinstance(body, str) else body
        self.answers[path] = Answer(content, **settings)

    def close(self):
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
