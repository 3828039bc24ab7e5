"""PostgreSQL, Redis and RabbitMQ of one's own: they may be killed, nobody else uses them.

Each has a folder for its data and a port that it keeps, so that it comes back as it was.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.soak.members import Member

HOST = "127.0.0.1"


class Missing(RuntimeError):
    """A program that is needed is not on this machine."""


def program(name: str, *folders: str) -> str:
    """Where the program is; some lie where not everybody looks."""
    for place in (None, "/usr/sbin", *folders):
        if found := shutil.which(name, path=place):
            return found
    raise Missing(f"{name} is not on this machine.")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody has at this moment."""
    with ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in taken]


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def postgres(folder: Path) -> tuple[Member, str]:
    """A PostgreSQL server with durable commits, and the address of its database."""
    tools = str(_newest_tools())
    data, (port,) = folder / "postgres", free_ports(1)
    data.mkdir(mode=0o700)
    who = _not_root("postgres")
    if who:
        shutil.chown(data, who, who)
    initdb = program("initdb", tools)
    subprocess.run(
        [initdb, "-D", str(data), "-U", "postgres", "--auth=trust", "-E", "UTF8"],
        check=True, capture_output=True, cwd="/", user=who, group=who,
        extra_groups=None if who is None else [],
    )  # fmt: skip
    command = [
        *(program("postgres", tools), "-D", str(data), "-p", str(port)),
        *("-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="),
        *("-c", "max_connections=300", "-c", "shared_buffers=128MB"),
    ]
    member = Member(
        "postgres",
        command,
        folder / "postgres.log",
        user=who,
        folder=data,
        ready=lambda: _takes(port),
    )
    # By SIGTERM it would wait until everybody has gone away by themselves.
    member.stopping = signal.SIGINT
    return member, f"postgres://postgres@{HOST}:{port}/postgres"


def redis(folder: Path) -> tuple[Member, str]:
    """A Redis that keeps nothing: what it held is gone with it."""
    data, (port,) = folder / "redis", free_ports(1)
    data.mkdir()
    command = [
        *(program("redis-server"), "--port", str(port), "--bind", HOST, "--dir", str(data)),
        *("--save", "", "--appendonly", "no"),
    ]
    member = Member("redis", command, folder / "redis.log", ready=lambda: listens(port))
    return member, f"redis://{HOST}:{port}/0"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[tuple[Member, str]]:
    """A RabbitMQ node with a directory of names of its own, which goes with it."""
    data = folder / "rabbitmq"
    data.mkdir()
    port, dist, names = free_ports(3)
    environment = {
        "HOME": str(data),
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": f"soak{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(dist),
        "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(data / "none"),
        "RABBITMQ_CONF_ENV_FILE": str(data / "none.sh"),
        "RABBITMQ_PID_FILE": str(data / "pid"),
        "RABBITMQ_SERVER_START_ARGS": "+S 1:1 +sbwt none",
    }
    (data / "plugins").write_text("[].\n")
    epmd = Member(
        "epmd",
        [program("epmd"), "-port", str(names), "-address", HOST],
        folder / "epmd.log",
        ready=lambda: listens(names),
    )
    server = program("rabbitmq-server", "/usr/lib/rabbitmq/bin")
    if Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists():
        # The one in the path becomes somebody else, who may not look into this folder.
        server = "/usr/lib/rabbitmq/bin/rabbitmq-server"
    node = Member(
        "rabbitmq",
        [server],
        folder / "rabbitmq.log",
        environment=os.environ | environment,
        ready=lambda: listens(port),
    )
    epmd.start()
    epmd.until_ready()
    try:
        yield node, f"amqp://guest:guest@{HOST}:{port}//"
    finally:
        epmd.end()


def _newest_tools() -> Path:
    """Where Debian keeps the tools of its newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda it: int(it.parent.name))
    return found[-1] if found else Path("/usr/bin")


def _not_root(name: str) -> str | None:
    """Who to be for a server that refuses to be root; None when this is not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        raise Missing(f"PostgreSQL does not run as root and there is no user {name}.") from None


def _takes(port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(f"postgres://postgres@{HOST}:{port}/postgres", connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True
