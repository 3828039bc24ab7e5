from __future__ import annotations

from django.urls import path

from gates import people_views, receipt_views, views

app_name = "gates"
urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("gates/<uuid:pk>/", views.gate, name="gate"),
    path("gates/<uuid:pk>/receipt/", receipt_views.receipt, name="receipt"),
    path("gates/<uuid:pk>/claim/", views.claim, name="claim"),
    path("gates/<uuid:pk>/release/", views.release, name="release"),
    path("gates/<uuid:pk>/answer/", views.answer, name="answer"),
    path("gates/<uuid:pk>/force-release/", views.force_release, name="force-release"),
    path("gates/<uuid:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("runs/<uuid:run>/steps/<int:position>/question/", views.of_step, name="of-step"),
    path("runs/<uuid:run>/questions/<str:digest>/", views.of_digest, name="of-digest"),
    path("teams/", people_views.team_list, name="team-list"),
    path("teams/<int:pk>/", people_views.team, name="team"),
    path("settings/", people_views.settings, name="settings"),
    path("settings/keys/", people_views.key_create, name="key-create"),
    path("settings/keys/<int:pk>/revoke/", people_views.key_revoke, name="key-revoke"),
]
