"""Mail: one message per delivery, all those of a run in one thread."""

from __future__ import annotations

import smtplib
from typing import Final

from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.message import BadHeaderError
from django.template.loader import render_to_string

from gates.models import Channel, Delivery
from gates.notify import kinds
from gates.notify.errors import NotSent
from gates.notify.message import Message, host

SECONDS: Final = 10
_SUBJECT: Final = 200


def send(channel: Channel, delivery: Delivery, message: Message) -> None:
    """Hand the mail over; raises NotSent when that did not work."""
    to = channel.address or (channel.user.email if channel.user is not None else "")
    if not to:
        raise NotSent("The account has no e-mail address.", retryable=False)
    try:
        mail = written(to, delivery, message)
        connection = get_connection(fail_silently=False, timeout=SECONDS)
        taken = connection.send_messages([mail])
    except BadHeaderError:
        raise NotSent("The address is no e-mail address.", retryable=False) from None
    except smtplib.SMTPRecipientsRefused as refused:
        codes = [code for code, _ in refused.recipients.values()]
        raise NotSent(
            f"The mail server refused the recipient ({codes[0] if codes else 'no code'}).",
            retryable=all(400 <= code < 500 for code in codes),
        ) from None
    except smtplib.SMTPResponseException as error:
        raise NotSent(
            f"The mail server answered {error.smtp_code}.",
            retryable=400 <= error.smtp_code < 500,
        ) from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"No mail server took it ({type(error).__name__}).", retryable=True) from None
    if not taken:
        raise NotSent("The mail server took nothing.", retryable=True)


def written(to: str, delivery: Delivery, message: Message) -> EmailMultiAlternatives:
    """The mail as it is sent; its id stays the same however often that is tried."""
    subject = " ".join(message.title.split())
    if len(subject) > _SUBJECT:
        subject = subject[: _SUBJECT - 1] + "…"
    footer = _FOOTERS.get(delivery.kind, "You chose to be told of this.")
    mail = EmailMultiAlternatives(
        subject=subject,
        body=f"{message.text(title=True)}\n\n{footer} Settings, Notifications changes it.\n",
        to=[to],
        headers={
            "Message-ID": _id(str(delivery.uid)),
            "Auto-Submitted": "auto-generated",
            "X-Auto-Response-Suppress": "All",
            **_thread(delivery),
        },
    )
    page = {"message": message, "footer": footer}
    mail.attach_alternative(render_to_string("email/notice.html", page), "text/html")
    return mail


def _thread(delivery: Delivery) -> dict[str, str]:
    """Mails of a run answer one that nobody sent, and a later one the one that asked."""
    if delivery.run_id is None:
        return {}
    run = _id(f"run-{delivery.run_id}")
    asked = (
        Delivery.objects.filter(
            channel=delivery.channel_id,
            request=delivery.request_id,
            kind__in=kinds.ASKING,
            state=Delivery.State.SENT,
            sent_with=None,
            pk__lt=delivery.pk,
        )
        .order_by("pk")
        .first()
        if delivery.request_id is not None
        else None
    )
    if asked is None:
        return {"In-Reply-To": run, "References": run}
    first = _id(str(asked.uid))
    return {"In-Reply-To": first, "References": f"{run} {first}"}


def _id(left: str) -> str:
    return f"<{left}@{host()}>"


_FOOTERS: Final = {
    **dict.fromkeys(kinds.ASKING, "You get this because you may answer it."),
    kinds.TEST: "You get this because somebody tested this channel.",
}
