from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")

# Models can be imported only after this call, and the consumers import them.
pages = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.urls import path  # noqa: E402

from gates.consumers import InboxConsumer  # noqa: E402
from obversa_site.around import Around  # noqa: E402
from obversa_site.bodies import BoundedBodies, bound_daphne  # noqa: E402
from obversa_site.draining import drain_daphne  # noqa: E402
from obversa_site.logs import clean_access_log  # noqa: E402
from obversa_site.origins import SameOrigin  # noqa: E402
from obversa_site.outlets import Outlets, open_outlets  # noqa: E402
from obversa_site.presence import when_serving  # noqa: E402
from obversa_site.readers import PacedAnswers  # noqa: E402
from runs.consumers import RunConsumer  # noqa: E402

bound_daphne()
clean_access_log()
open_outlets()
when_serving()
drain_daphne()
sockets = URLRouter(
    [
        path("ws/runs/<uuid:pk>/", RunConsumer.as_asgi()),
        path("ws/inbox/", InboxConsumer.as_asgi()),
    ]
)
application = Around(
    ProtocolTypeRouter(
        {
            "http": PacedAnswers(BoundedBodies(pages)),
            "websocket": Outlets(
                SameOrigin(AllowedHostsOriginValidator(AuthMiddlewareStack(sockets)))
            ),
        }
    )
)
