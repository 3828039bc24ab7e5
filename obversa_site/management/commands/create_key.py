from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from gates.errors import KeyRefused
from gates.keys import create_key
from gates.models import ApiKey, Router


class Command(BaseCommand):
    help = "Make a key for a program. It is shown once, alone on the last line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=ApiKey.SCOPES,
            help="what it may do; give it once for each scope",
        )
        parser.add_argument("--user", help="the person it acts for; it can do nothing they cannot")
        parser.add_argument("--router", help="the service it acts as, and as nothing else")

        parser.add_argument(
            "--days",
            type=int,
            help="how long it lives, 0 for ever; by default 90 for a person's key, else for ever",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = self._user(options["user"]) if options["user"] else None
        router = self._router(options["router"]) if options["router"] else None
        try:
            key, text = create_key(
                options["name"], options["scope"], user, days=options["days"], router=router
            )
        except KeyRefused as refusal:
            raise CommandError(str(refusal)) from refusal
        for_whom = f" for {user.get_username()}" if user else f" as {router}" if router else ""
        self.stdout.write(f"{key.name}{for_whom} may: {', '.join(key.scopes)}")
        ends = f"on {key.expires_at:%Y-%m-%d}" if key.expires_at is not None else "never"
        self.stdout.write(f"It ends {ends}.")
        self.stdout.write("Keep it now, it cannot be shown again:")
        self.stdout.write(text)

    def _router(self, name: str) -> Router:
        router = Router.objects.filter(name=name).first()
        if router is None:
            raise CommandError(f"There is no router {name!r}.")
        return router

    def _user(self, name: str) -> User:
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active person named {name!r}.")
        return user
