"""Who may do what, where: every action, every surface, every role, in one table.

`+` it happens, `-` it is forbidden, `0` it is not there (404), `?` the door (sign in, 401). Where
it does not happen, nothing has changed. The roles are tests/site/matrix/world.py's: `answerer` is
of the question's audience, `looker` may see everything, `agent` is a key of nobody that started
the run itself, `visitor` is not signed in. People come to REST by session and by a key of theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.db import connections
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from obversa_site.asgi import application
from tests import factories
from tests.site.matrix.surfaces import ACTS, READS, by_api, by_mail, by_page, mark
from tests.site.matrix.world import ROLES, TEAM, World, key_of, person, world_for

# action         surfaces       answerer looker outsider starter operator root agent visitor
TABLE: Final = """
see              page           +        +      0        +       +        +    ?     ?
see              session,key    +        +      0        +       +        +    +     ?
see              mail           +        +      0        +       +        +    ?     ?
history          session,key    +        +      0        +       +        +    +     ?
receipt          page           +        +      0        +       +        +    ?     ?
receipt          session,key    +        +      0        +       +        +    +     ?
frame            page           +        +      0        +       +        +    ?     ?
claim            page           +        -      0        -       -        -    ?     ?
claim            session,key    +        -      0        -       -        -    -     ?
release          page           +        -      0        -       -        -    ?     ?
release          session,key    +        -      0        -       -        -    -     ?
answer           page           +        -      0        -       -        -    ?     ?
answer           session,key    +        -      0        -       -        -    -     ?
answer-several   page           +        409    409      409     409      409  ?     ?
force-release    page           -        -      0        -       +        +    ?     ?
force-release    session,key    -        -      0        -       +        +    +     ?
withdraw         page           -        -      0        -       +        +    ?     ?
withdraw         session,key    -        -      0        -       +        +    +     ?
assign           page           +        -      0        -       +        +    ?     ?
assign           session,key    +        -      0        -       +        +    +     ?
delegate         page           +        -      0        -       -        -    ?     ?
delegate         session,key    +        -      0        -       -        -    -     ?
break-glass      page           -        -      0        -       -        +    ?     ?
break-glass      session        -        -      0        -       -        +    -     ?
break-glass      key            -        -      0        -       -        -    -     ?
see-run          page           +        +      0        +       +        +    ?     ?
see-run          session,key    +        +      0        +       +        +    +     ?
events           session,key    +        +      0        +       +        +    +     ?
stream           session,key    +        +      0        +       +        +    +     ?
watch            socket         +        +      0        +       +        +    0     0
news             socket         +        +      +        +       +        +    ?     ?
operations       page           -        +      -        -       +        +    ?     ?
file             page           +        +      0        +       +        +    ?     ?
file             session,key    +        +      0        +       +        +    +     ?
start            page           +        -      0        0       -        -    ?     ?
start            session,key    +        -      0        0       -        -    +     ?
cancel           page           -        -      0        +       -        +    ?     ?
cancel           session,key    -        -      0        +       -        +    +     ?
resume           page           -        -      0        +       -        +    ?     ?
resume           session,key    -        -      0        +       -        +    +     ?
retry            page           -        -      0        +       -        +    ?     ?
retry            session,key    -        -      0        +       -        +    +     ?
rerun            page           +        -      0        0       -        -    ?     ?
rerun            session,key    +        -      0        0       -        -    +     ?
revoke           page           +        0      0        0       +        +    ?     ?
revoke           session,key    +        0      0        0       +        +    +     ?
see              admin          ?        ?      ?        ?       ?        +    ?     ?
force-release    admin          ?        ?      ?        ?       ?        +    ?     ?
"""
# Whatever has its own address is somebody's.
NOUNS: Final = ("gates", "grants", "requests", "runs")
ROWS: Final = [
    (action, surface, dict(zip(ROLES, signs, strict=True)))
    for action, surfaces, *signs in map(str.split, TABLE.strip().splitlines())
    for surface in surfaces.split(",")
]
TRIED: Final = [row for row in ROWS if row[1] in ("page", "session", "key", "mail", "admin")]
WATCHED: Final = [row for row in ROWS if row[1] == "socket"]


@pytest.fixture
def keys_by_role(db: None) -> dict[str, str]:
    return {role: key_of(role) for role in ROLES}


def attempt(surface: str, role: str, key: str, world: World, action: str) -> Any:
    """Try it as this role: a person by session, a key of theirs or an agent's by its header."""
    client, headers = Client(), {}
    user = person(role)
    if surface == "key" or role == "agent":
        headers = {"Authorization": f"Bearer {key}"} if key else {}
    elif user is not None:
        client.force_login(user)
    way: Callable[..., Any] = {"page": by_page, "mail": by_mail, "admin": by_admin}.get(
        surface, by_api
    )
    return way(client, world, action, **headers)


def by_admin(client: Client, world: World, action: str, **headers: str) -> Any:
    if action == "see":
        path = f"/admin/gates/request/{world.gate.pk}/change/"
        return client.get(path, headers=headers)
    chosen = {
        "action": "force_release", "_selected_action": str(world.gate.pk),
        "confirmed": "yes", "reason": "because",
    }  # fmt: skip
    return client.post("/admin/gates/request/", chosen, headers=headers)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "surface", "expected"), TRIED, ids=[f"{row[0]}-{row[1]}" for row in TRIED]
)
def test_every_role_gets_what_the_table_says(
    action: str, surface: str, expected: dict[str, str], keys_by_role: dict[str, str]
) -> None:
    factories.user("colleague", groups=[TEAM])
    found: dict[str, str] = {}
    world, before = None, None
    for role, sign in expected.items():
        # What a refusal left as it was is good for the next role.
        if world is None or role == "agent" or world.facts() != before:
            world = world_for(action, by_key=surface == "key", agent_starts=role == "agent")
            before = world.facts()
        found[role] = mark(attempt(surface, role, keys_by_role[role], world, action))
        if action in ACTS:
            assert (world.facts() != before) == (found[role] == "+"), (role, found[role])
        else:
            assert world.facts() == before, role
        assert sign in ("+", "-", "0", "?", "409")

    assert found == expected


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("action", "surface", "expected"), WATCHED, ids=[f"{row[0]}-{row[1]}" for row in WATCHED]
)
async def test_every_role_watches_what_the_table_says(
    action: str, surface: str, expected: dict[str, str]
) -> None:
    found = {}
    for role in expected:
        path, headers = await sync_to_async(_to_watch)(action, role)
        watching = WebsocketCommunicator(application, path, headers=headers)
        opened, code = await watching.connect()
        found[role] = "+" if opened else {4404: "0", 4401: "?"}[code or 0]
        await watching.disconnect()

    assert found == expected


def _to_watch(action: str, role: str) -> tuple[str, list[tuple[bytes, bytes]]]:
    world = world_for(action, agent_starts=role == "agent")
    path = f"/ws/runs/{world.run.pk}/" if action == "watch" else "/ws/inbox/"
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    user = person(role)
    if role == "agent":
        headers.append((b"authorization", f"Bearer {key_of(role)}".encode()))
    elif user is not None:
        client = Client()
        client.force_login(user)
        headers.append((b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode()))
    return path, headers


def test_no_address_that_names_a_question_a_run_or_a_grant_is_missing() -> None:
    known = {_bare(path) for path in _templates()}
    found = {
        _bare(path)
        for path in _routes(get_resolver(), "")
        if "admin/" not in path and any(f"{noun}/<" in path for noun in NOUNS)
    }

    # A step's question and a question by its digest lead on to the question's own page; the files
    # of a change are parts of it. They are walked in tests/site/test_attack_walk.py.
    leading = {"runs/*/steps/*/question/", "runs/*/questions/*/", "gates/*/files/*/"}
    assert sorted(found - known - leading) == []


def _templates() -> list[str]:
    api = [f"api/v1{api}" for api, _ in [*READS.values(), *ACTS.values()] if api]
    return [*api, *(page.lstrip("/") for _, page in [*READS.values(), *ACTS.values()] if page)]


def _bare(path: str) -> str:
    """The address with a star for whatever is filled in."""
    parts = path.replace("{", "<").replace("}", ">").split("/")
    return "/".join("*" if part.startswith("<") else part for part in parts)


def _routes(resolver: URLResolver, before: str) -> list[str]:
    found: list[str] = []
    for part in resolver.url_patterns:
        path = before + str(part.pattern)
        if isinstance(part, URLResolver):
            found += _routes(part, path)
        elif isinstance(part, URLPattern):
            found.append(path)
    return found


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()
