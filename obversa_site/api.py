"""The one API object: its routers, its errors, its addresses."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final, cast

from django.conf import settings
from django.core.exceptions import SuspiciousOperation, TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from ninja.types import DictStrAny

from gates.actions.grant_views import router as grants_router
from gates.answers.hands_api import router as hands_router
from gates.api import router as gates_router
from gates.receipts.receipt_views import router as receipts_router
from obversa_site import api_docs, openapi, rates
from obversa_site.auth import AUTH, Unauthenticated
from runs.api import router as runs_router
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.replies import reply

# From the code of a refusal to its HTTP status: the only such table.
STATUS: Final[Mapping[str, int]] = {
    "INVALID_JSON_VALUE": 400,
    "bad-request": 400,
    "unauthenticated": 401,
    "csrf": 403,
    "forbidden": 403,
    "self-approval": 403,
    "scope": 403,
    "artifact-missing": 404,
    "missing": 404,
    "not-found": 404,
    "workflow-unknown": 404,
    "method-not-allowed": 405,
    "answered": 409,
    "artifact-changed": 409,
    "cancelled": 409,
    "claimed": 409,
    "ended": 409,
    "idempotency-conflict": 409,
    "not-answered": 409,
    "policy-changed": 409,
    "not-claimed": 409,
    "not-owner": 409,
    "not-paused": 409,
    "not-retrying": 409,
    "not-over": 409,
    "record-altered": 409,
    "stale": 409,
    "team-answered": 409,
    "superseded": 409,
    "workflow-broken": 409,
    "archived": 410,
    "expired": 410,
    "artifact-quota": 413,
    "artifact-too-large": 413,
    "too-large": 413,
    "range-beyond": 416,
    "audience": 422,
    "cursor": 422,
    "definition": 422,
    "deputy": 422,
    "not-assignable": 422,
    "invalid": 422,
    "key": 422,
    "params": 422,
    "reason": 422,
    "schema": 422,
    "validation": 422,
    "too-many-open": 429,
    "too-many-requests": 429,
    "failed": 500,
}

View = Callable[..., HttpResponseBase | Awaitable[HttpResponseBase]]


class StrictParser(Parser):
    """Reads bodies as the digests mean JSON: no NaN, no key twice, nothing a double cannot hold."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        if _is_empty_form(request):
            return {}
        return cast(DictStrAny, parse_json(request.body))


def _is_empty_form(request: HttpRequest) -> bool:
    """A POST without a body, as some clients write it."""
    if request.content_type != "multipart/form-data":
        return False
    try:
        return not (request.POST or request.FILES)
    except (MultiPartParserError, SuspiciousOperation):
        return False  # it calls itself a form and is none, or has more fields than any


class Api(NinjaAPI):
    """The API, with a JSON answer at every address below it."""

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app, namespace = super().urls
        own = [
            path("docs", api_docs.docs, name="docs"),
            path("<path:rest>", _unknown),
        ]
        return [_in_json(pattern) for pattern in [*patterns, *own]], app, namespace

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: DictStrAny | None = None
    ) -> OpenAPISchema:
        schema = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        return cast(OpenAPISchema, openapi.complete(schema, STATUS))


def _in_json(pattern: URLResolver | URLPattern) -> URLResolver | URLPattern:
    """Let an unknown address or method be refused like everything else."""
    view = cast(View, pattern.callback)

    @wraps(view)
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        try:
            return _said(request, cast(HttpResponseBase, view(request, **kwargs)))
        except Http404:
            return refusal("not-found", "There is nothing at this address.")
        except TooManyFieldsSent:
            return _too_many_fields()

    @wraps(view)
    async def answer_async(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        try:
            return _said(request, await cast(Awaitable[HttpResponseBase], view(request, **kwargs)))
        except TooManyFieldsSent:
            return _too_many_fields()

    # A session shows its token in obversa_site/auth.py, a key needs none.
    pattern.callback = csrf_exempt(answer_async if inspect.iscoroutinefunction(view) else answer)
    return pattern


def _said(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    rates.tell(request, answer)
    if not isinstance(answer, HttpResponseNotAllowed):
        return answer
    allowed = ", ".join(sorted(answer["Allow"].split(", ")))
    told = refusal("method-not-allowed", f"This address takes {allowed}.")
    told["Allow"] = allowed
    return told


def _too_many_fields() -> HttpResponse:
    """Nobody reads a thousand parameters."""
    most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    return refusal("validation", f"An address takes at most {most} parameters.")


def _unknown(request: HttpRequest, rest: str) -> HttpResponse:
    raise Http404


api = Api(
    title="Obversa",
    version="1",
    description=(
        "Ask questions, answer them, start runs and follow them. Names are camelCase, times are "
        "RFC 3339 in UTC. Sign in, or send `Authorization: Bearer KEY`; a request with that header "
        "is judged by it alone."
    ),
    auth=AUTH,
    throttle=rates.PerCaller(),
    parser=StrictParser(),
    docs_url=None,
    openapi_url=None,
)
api.add_router("", gates_router)
api.add_router("", hands_router)
api.add_router("", receipts_router)
api.add_router("", grants_router)
api.add_router("", runs_router)


@api.get("/openapi.json", include_in_schema=False, url_name="openapi-json")
def openapi_json(request: HttpRequest) -> HttpResponse:
    """The description, for whoever may call what it describes."""
    return reply(api.get_openapi_schema())


def refusal(code: str, message: str, field: str | None = None, details: Any = None) -> HttpResponse:
    """The one shape of an error."""
    error: dict[str, Any] = {"code": code, "message": message}
    if field:
        error["field"] = field
    if details:
        error["details"] = details
    answer = reply({"error": error}, STATUS[code])
    if STATUS[code] == 401:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


@api.exception_handler(Exception)
def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer a refusal; anything else is a fault of ours, and Django reports it."""
    code = getattr(type(error), "code", None)
    if not isinstance(code, str) or code not in STATUS:
        raise error
    details = getattr(error, "details", None)
    if faults := getattr(error, "fields", None):
        details = _fields(faults)
    return refusal(code, str(error), getattr(error, "field", None), details)


@api.exception_handler(JsonValueError)
def _not_json(request: HttpRequest, error: JsonValueError) -> HttpResponse:
    return refusal(error.code, str(error), details={"path": error.path})


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    if seconds := rates.stranger_waits(request):
        return _throttled(request, Throttled(wait=math.ceil(seconds)))
    return refusal("unauthenticated", "Sign in, or send `Authorization: Bearer KEY`.")


@api.exception_handler(Unauthenticated)
def _wrong_key(request: HttpRequest, error: Unauthenticated) -> HttpResponse:
    if seconds := rates.stranger_waits(request):
        return _throttled(request, Throttled(wait=math.ceil(seconds)))
    return refusal(error.code, str(error))


@api.exception_handler(Throttled)
def _throttled(request: HttpRequest, error: Throttled) -> HttpResponse:
    told = refusal("too-many-requests", "Too many requests. Wait as long as Retry-After says.")
    if error.wait is not None:
        told["Retry-After"] = str(max(1, math.ceil(error.wait)))
    return told


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    # Ninja wraps what its parser raises, and raises this for nothing else here.
    if isinstance(error.__cause__, JsonValueError):
        return _not_json(request, error.__cause__)
    raise error


@api.exception_handler(ValidationError)
def _misfit(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field as the caller wrote it; ninja puts its source and parameter in front."""
    faults = [(_field(fault), str(fault["msg"])) for fault in error.errors]
    told = " ".join(f"{name}: {text}." if name else f"{text}." for name, text in faults)
    return refusal("validation", told, faults[0][0], _fields(faults))


def _field(fault: Mapping[str, Any]) -> str:
    source, *where = fault["loc"]
    if source == "body":
        return ".".join(str(part) for part in where[1:])
    return next((part for part in reversed(where) if isinstance(part, str)), "")


def _fields(faults: Any) -> dict[str, Any]:
    return {"fields": [{"field": name, "message": text} for name, text in faults]}
