"""All processes of one scaled-out installation; its servers are its own and may be killed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.services.behind import nginx_conf
from tests.soak import servers
from tests.soak.members import ROOT, Member

LEASE_SECONDS = "5"
CONTROL, STEPS = ("-Q", "control,notify"), ("-Q", "steps")


@dataclass(kw_only=True)
class House:
    """Two web processes behind nginx, four workers, beat, and the servers they need."""

    home: Path
    port: int
    environment: dict[str, str]
    servers: dict[str, Member] = field(default_factory=dict)
    processes: dict[str, Member] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://{servers.HOST}:{self.port}"

    @property
    def members(self) -> dict[str, Member]:
        return self.servers | self.processes

    def manage(
        self, *words: str, environment: Mapping[str, str] | None = None, folder: Path = ROOT
    ) -> str:
        """Run a command of the product to its end; what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=folder, env=dict(environment or self.environment), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"manage.py {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def python(self, name: str, *words: str, folder: Path = ROOT) -> Member:
        """A process of the product that is not started yet."""
        log = self.home / f"{name}.log"
        return Member(name, [sys.executable, "-m", *words], log, self.environment, folder)

    def web(self, name: str, port: int, *, folder: Path = ROOT) -> Member:
        place = ("-b", servers.HOST, "-p", str(port), "--proxy-headers", "-v", "0")
        # As docs/deploy has it.
        patient = ("--websocket_connect_timeout", "20")
        made = self.python(
            name, "daphne", *place, *patient, "obversa_site.asgi:application", folder=folder
        )
        made.ready = lambda: _answers(port)
        return made

    def worker(self, name: str, *options: str, folder: Path = ROOT) -> Member:
        quiet = ("--without-gossip", "--without-mingle", "--loglevel", "WARNING")
        what = ("celery", "-A", "obversa_site", "worker", "--concurrency", "2", *quiet)
        return self.python(name, *what, "-n", f"{name}@%h", *options, folder=folder)

    def start(self, names: dict[str, Member]) -> None:
        for member in names.values():
            member.start()
        for member in names.values():
            member.until_ready()

    def end(self) -> None:
        """Everything is gone, whatever it was doing; what uses a server goes before it."""
        for member in [*self.processes.values(), *self.servers.values()]:
            member.end()

    def overstayed(self) -> list[str]:
        return [text for member in self.members.values() for text in member.overstayed]


@contextmanager
def house(home: Path, broker: str, workflows: str) -> Iterator[House]:
    """A running installation in this folder; its broker is Redis or RabbitMQ, its bell is Redis."""
    home.chmod(0o755)
    (home / "scene" / "now").mkdir(parents=True)
    first, second, port = servers.free_ports(3)
    with ExitStack() as running:
        postgres, database_url = servers.postgres(home)
        redis, redis_url = servers.redis(home)
        found = {"postgres": postgres, "redis": redis}
        broker_url = redis_url
        if broker == "rabbitmq":
            found["rabbitmq"], broker_url = running.enter_context(servers.rabbitmq(home))
        gone = ("EMAIL_URL", "OBVERSA_TEST_RUN", "OBVERSA_LOG")
        environment = {name: text for name, text in os.environ.items() if name not in gone} | {
            "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
            "DATABASE_URL": database_url,
            "CELERY_BROKER_URL": broker_url,
            "CHANNEL_REDIS_URL": redis_url.removesuffix("/0") + "/1",
            "OBVERSA_HOME": str(home / "obversa"),
            "OBVERSA_SECRET_KEY": secrets.token_urlsafe(48),
            "OBVERSA_BASE_URL": f"http://{servers.HOST}:{port}",
            "OBVERSA_ALLOWED_HOSTS": servers.HOST,
            "OBVERSA_WORKFLOWS": workflows,
            "OBVERSA_LEASE_SECONDS": LEASE_SECONDS,
            "OBVERSA_TEST_SCENE": str(home / "scene"),
        }
        made = House(home=home, port=port, environment=environment, servers=found)
        running.callback(made.end)
        made.start(made.servers)
        made.manage("migrate", "--verbosity", "0")
        made.manage("collectstatic", "--noinput", "--verbosity", "0")
        made.processes = {
            "web 1": made.web("web 1", first),
            "web 2": made.web("web 2", second),
            "worker 1": made.worker("worker 1", *CONTROL),
            "worker 2": made.worker("worker 2", *CONTROL),
            "worker 3": made.worker("worker 3", *STEPS),
            "worker 4": made.worker("worker 4", *STEPS),
            "beat": made.python("beat", "celery", "-A", "obversa_site", "beat", "--pidfile="),
            "nginx": _nginx(home, (first, second), port),
        }
        made.start(made.processes)
        yield made


def _nginx(home: Path, behind: tuple[int, int], port: int) -> Member:
    conf = home / "nginx.conf"
    conf.write_text(nginx_conf(home, home / "obversa" / "static", behind, port))
    command = [servers.program("nginx"), "-c", str(conf), "-p", str(home), "-g", "daemon off;"]
    return Member("nginx", command, home / "nginx.log", ready=lambda: servers.listens(port))


def _answers(port: int) -> bool:
    try:
        return requests.get(f"http://{servers.HOST}:{port}/healthz", timeout=2).ok
    except requests.RequestException:
        return False
