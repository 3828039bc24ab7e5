"""When a message may go out: quiet hours in the person's own zone, and digests."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gates.models import Channel, Preference
from gates.notify import kinds

MORNING: Final = time(8)


def zone_of(name: str) -> ZoneInfo:
    """The zone of this name; UTC when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def zone_for(preference: Preference | None) -> ZoneInfo:
    """The zone in which a person reads times."""
    return zone_of("UTC" if preference is None else preference.zone)


def first_time(
    channel: Channel, preference: Preference | None, kind: str, now: datetime
) -> datetime:
    """When a message that is made now may go out: at once, with the digest, or after the night."""
    if kind == kinds.TEST or channel.kind == Channel.Kind.WEBHOOK:
        return now
    return quiet_end(channel, preference, kind, _digest_time(channel, preference, now))


def quiet_end(
    channel: Channel, preference: Preference | None, kind: str, now: datetime
) -> datetime:
    """The end of the quiet hours that `now` is in; `now` itself when it is in none."""
    if kind == kinds.TEST or channel.kind == Channel.Kind.WEBHOOK:
        return now
    if preference is None or preference.quiet_from is None or preference.quiet_until is None:
        return now
    zone = zone_for(preference)
    here = now.astimezone(zone)
    begin, end = preference.quiet_from, preference.quiet_until
    clock = here.time()
    over_midnight = begin > end
    is_quiet = clock >= begin or clock < end if over_midnight else begin <= clock < end
    if not is_quiet:
        return now
    day = here.date() + timedelta(days=int(over_midnight and clock >= begin))
    # In the hour that the clock repeats or leaves out the end may already be past: never go back.
    return max(now, datetime.combine(day, end, zone).astimezone(UTC))


def _digest_time(channel: Channel, preference: Preference | None, now: datetime) -> datetime:
    if channel.digest == Channel.Digest.HOURLY:
        return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if channel.digest == Channel.Digest.DAILY:
        zone = zone_for(preference)
        here = now.astimezone(zone)
        day = here.date() + timedelta(days=int(here.time() >= MORNING))
        return datetime.combine(day, MORNING, zone).astimezone(UTC)
    return now
