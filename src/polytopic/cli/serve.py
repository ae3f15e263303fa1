"""The command ``polytopic serve``."""

import gc
import ipaddress
import socket
import sys
import warnings

import click

from polytopic.cli.options import count_option

SWITCH_INTERVAL = 0.002  # seconds after which a busy thread yields to those that answer
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")  # names that mean this machine


@click.command()
@click.argument("source")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Origin that may call the service from a browser (CORS); repeatable.",
)
@count_option("--megabytes", 32, "Maximum request size in megabytes, except for streams of lines.")
@count_option("--waiting", 256, "Maximum number of waiting requests; others get status 503.")
@count_option("--connections", 1024, "Maximum number of open connections.")
def command(source, host, port, origins, megabytes, waiting, connections):
    """Serve SOURCE, a store or a model file, over HTTP. Model files are read-only.

    The printed address is that of the web page; /docs and /openapi.json describe the API. On a
    loopback address, reading is open and changes need a token (polytopic token create). On other
    addresses, all requests need a token, so a store without tokens is rejected.
    """
    gc.disable()  # while loading, when there is nothing to free
    try:
        from polytopic.server import create_app
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed. Install it with: pip install 'polytopic[server]'"
        ) from error
    local = _is_local(host)
    app = create_app(
        source,
        open_reading=local,
        max_body_bytes=megabytes << 20,
        max_waiting=waiting,
        origins=origins,
        hosts=tuple(dict.fromkeys((*LOCAL_NAMES, host))) if local else None,
    )
    store = app.state.service.live.store
    if not local and (store is None or not store.tokens.all()):
        raise click.ClickException(
            f"--host {host} can be reached from other machines, but {source} has no tokens. "
            "Create one with polytopic token create, or listen on 127.0.0.1."
        )
    with listen(host, port) as listener:
        click.echo(f"Serving {source} at {address_of(listener)} - stop with Ctrl+C.", err=True)
        serve(app, listener, connections)


def listen(host, port, *, any_port=False):
    """Return a listening socket; clients wait until the service is ready.

    With ``any_port``, another port is used if this one is in use.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if any_port:
            return listen(host, 0)
        reason = (error.strerror or str(error)).lower()
        raise click.ClickException(
            f"cannot listen on --host {host} --port {port}: {reason}."
        ) from error


def address_of(listener):
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app, listener, connections=1024):
    """Answer requests on a socket until interrupted."""
    from polytopic.server.connections import ConnectionLimits, create_server

    sys.setswitchinterval(SWITCH_INTERVAL)
    # raised if Ctrl+C is pressed before the server starts
    warnings.filterwarnings("ignore", "coroutine 'Server.serve' was never awaited", RuntimeWarning)
    limits = ConnectionLimits(
        connections=min(connections, _allow_files(2 * connections + 512) // 2)
    )
    create_server(app, limits).run(sockets=[listener])


def _allow_files(number):
    """Raise the limit on open files to this number if possible; return the limit."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return number
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return number
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def _is_local(host):
    """Return whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
