from __future__ import annotations

from django.urls import path

from gates.notify import views

urlpatterns = [
    path("settings/quiet-hours/", views.quiet_hours, name="quiet-hours"),
    path("channels/add/<str:kind>/", views.channel_add, name="channel-add"),
    path("channels/<int:pk>/", views.channel, name="channel"),
    path("channels/<int:pk>/test/", views.channel_test, name="channel-test"),
    path("channels/<int:pk>/secret/", views.channel_secret, name="channel-secret"),
    path("channels/<int:pk>/remove/", views.channel_remove, name="channel-remove"),
    path("teams/<int:team>/channels/add/<str:kind>/", views.channel_add, name="team-channel-add"),
    path("notifications/", views.delivery_list, name="delivery-list"),
    path("notifications/<uuid:uid>/again/", views.delivery_again, name="delivery-again"),
]
