"""Channels and messages for the people who look after this installation: facts, no addresses."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from gates.models import Channel, Delivery
from runs.admin import ReadOnly


@admin.register(Channel)
class ChannelAdmin(ReadOnly, admin.ModelAdmin[Channel]):
    list_display = ["name", "kind", "user", "team", "shown", "digest", "created_at", "removed_at"]
    list_filter = ["kind", "digest"]
    list_select_related = ["user", "team"]
    search_fields = ["name", "user__username", "team__name"]
    fields = [
        "name", "kind", "user", "team", "shown", "wants", "digest", "created_by", "created_at",
        "removed_at",
    ]  # fmt: skip
    readonly_fields = ["shown"]

    @admin.display(description="leads to")
    def shown(self, channel: Channel) -> str:
        return channel.shown_address


@admin.register(Delivery)
class DeliveryAdmin(ReadOnly, admin.ModelAdmin[Delivery]):
    list_display = ["created_at", "kind", "channel", "state", "attempts", "error", "done_at"]
    list_filter = ["state", "kind"]
    list_select_related = ["channel"]
    search_fields = ["channel__name", "channel__user__username", "channel__team__name"]
    show_full_result_count = False
    fields = [
        "uid", "kind", "channel", "run", "request", "seq", "key", "state", "attempts", "error",
        "held", "sent_with", "created_at", "next_at", "lease_until", "done_at",
    ]  # fmt: skip

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("gates.view_delivery")
