"""A program that asks through the API, so that the server itself rings its bells."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

from gates import keys
from gates.models import Request
from tests.browser.product import Product
from tests.factories import APPROVAL, FOR_ADA


class Bot:
    """Holds a key and asks questions for ada unless told otherwise."""

    def __init__(self, product: Product) -> None:
        self._url = f"{product.url}/api/v1/requests"
        _, self._key = keys.create_key("ops-bot", ["read", "start"])

    def ask(
        self,
        text: str,
        *,
        gate: str = "",
        schema: Mapping[str, Any] = APPROVAL,
        about: Any = None,
        audience: Mapping[str, Any] | None = None,
        stream: str = "ops",
        **more: Any,
    ) -> Request:
        body = {
            "gateId": gate or text,
            "gateVersion": 1,
            "decisionText": text,
            "responseSchema": schema,
            "input": about if about is not None else {"revision": "abc123"},
            "stream": stream,
            "audience": FOR_ADA if audience is None else audience,
            **more,
        }
        request = urllib.request.Request(
            self._url,
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            made = json.load(answer)
        return Request.objects.select_related("run").get(pk=made["id"])
