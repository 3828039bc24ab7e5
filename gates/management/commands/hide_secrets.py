from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from gates.rehiding import hide_all


class Command(BaseCommand):
    help = "Encrypts secrets of webhooks and routers that lie plainly or under an older key."

    def handle(self, *args: Any, **options: Any) -> None:
        done, unread = hide_all()
        self.stdout.write(f"{done} written anew under the newest key.")
        if unread:
            self.stdout.write(
                f"{unread} cannot be read: put their key into OBVERSA_SECRET_KEY_FALLBACKS, "
                "or give those channels and routers a new secret."
            )
