"""polytopic serve."""

import gc
import ipaddress
import socket
import sys
import warnings

import click

SWITCH = 0.002  # seconds after which a thread that works lets those that answer go on
OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")  # of this machine, by which nobody else is called


@click.command()
@click.argument("source")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="A site whose pages may call the service (CORS); may be repeated.",
)
@click.option(
    "--megabytes",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Size of a request at most, but for streams of lines.",
)
@click.option(
    "--waiting",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Requests that may wait; more are sent away for a moment.",
)
@click.option(
    "--connections",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Connections that may be open at once.",
)
def command(source, host, port, origins, megabytes, waiting, connections):
    """Answer over HTTP with SOURCE, a store or a model file, which cannot learn.

    The address that is shown is that of a page for people; programs find the service described at
    /docs and /openapi.json. On this machine's own addresses reading
    is open; changing needs a token (polytopic token create). Other addresses need tokens for all,
    so that a store without any is refused.
    """
    gc.disable()  # until all is loaded, of which nothing goes
    try:
        from polytopic.server import create_app
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed, which the service needs: "
            "pip install 'polytopic[server]'."
        ) from error
    local = _is_local(host)
    app = create_app(
        source,
        open_reading=local,
        max_body_bytes=megabytes << 20,
        max_waiting=waiting,
        origins=origins,
        hosts=(*OWN_NAMES, host) if local else None,
    )
    store = app.state.service.live.store
    if not local and (store is None or not store.tokens.all()):
        raise click.ClickException(
            f"--host == {host} can be reached from other machines, and {source} has no tokens; "
            "make one with polytopic token create, or listen on 127.0.0.1."
        )
    with listening(host, port) as listener:
        click.echo(f"Serving {source} at {address_of(listener)} - stop with Ctrl+C.", err=True)
        serve(app, listener, connections)


def listening(host, port, *, or_any=False):
    """Return a socket that listens; who connects waits until the service is ready.

    ``or_any`` takes another port where this one is taken.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if or_any:
            return listening(host, 0)
        reason = (error.strerror or str(error)).lower()
        raise click.ClickException(
            f"--host == {host} and --port == {port} cannot be listened on: {reason}."
        ) from error


def address_of(listener):
    """Return the address of a socket that listens, for a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app, listener, connections=1024):
    """Answer on a socket until it is enough."""
    from polytopic.server.connections import ConnectionLimits, create_server

    sys.setswitchinterval(SWITCH)
    # Ctrl+C may come before the server has begun
    warnings.filterwarnings("ignore", "coroutine 'Server.serve' was never awaited", RuntimeWarning)
    limits = ConnectionLimits(connections=min(connections, _most_files(2 * connections + 512) // 2))
    create_server(app, limits).run(sockets=[listener])


def _most_files(wanted):
    """Return how many files the process may open, after asking for so many."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def _is_local(host):
    """Tell whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
