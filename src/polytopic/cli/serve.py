"""polytopic serve."""

import ipaddress

import click


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
def command(source, host, port, origins, megabytes, waiting):
    """Answer over HTTP with SOURCE, a store or a model file, which cannot learn.

    Programs find the service described at /openapi.json. On this machine's own addresses reading
    is open; changing needs a token (polytopic token create). Other addresses need tokens for all,
    so that a store without any is refused.
    """
    try:
        import uvicorn

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
        most_bytes=megabytes << 20,
        waiting=waiting,
        origins=origins,
    )
    store = app.state.service.live.store
    if not local and (store is None or not store.tokens()):
        raise click.ClickException(
            f"--host == {host} can be reached from other machines, and {source} has no tokens; "
            "make one with polytopic token create, or listen on 127.0.0.1."
        )
    server = uvicorn.Server(
        uvicorn.Config(app, host, port, log_level="warning", timeout_graceful_shutdown=30)
    )
    server.config.load()
    click.echo(f"Serving {source} at http://{host}:{port} - stop with Ctrl+C.", err=True)
    server.run()


def _is_local(host):
    """Tell whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
