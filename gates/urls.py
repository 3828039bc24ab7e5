from __future__ import annotations

from django.urls import path

from gates import people_views, views
from gates.actions import grant_views
from gates.answers import bulk_views, deputy_views, hand_views
from gates.evidence import evidence_views
from gates.notify.urls import urlpatterns as notify_urls
from gates.receipts import receipt_views
from gates.reviews import diff_views
from gates.teams import team_views

app_name = "gates"
urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("gates/<uuid:pk>/", views.gate, name="gate"),
    path("gates/<uuid:pk>/receipt/", receipt_views.receipt, name="receipt"),
    path("gates/<uuid:pk>/evidence/<str:digest>/", evidence_views.page, name="evidence"),
    path("gates/<uuid:pk>/files/<int:index>/", diff_views.diff_file, name="diff-file"),
    path("gates/<uuid:pk>/claim/", views.claim, name="claim"),
    path("gates/<uuid:pk>/release/", views.release, name="release"),
    path("gates/<uuid:pk>/answer/", views.answer, name="answer"),
    path("gates/<uuid:pk>/force-release/", views.force_release, name="force-release"),
    path("gates/<uuid:pk>/withdraw/", views.withdraw, name="withdraw"),
    path("gates/<uuid:pk>/assign/", hand_views.assign, name="assign"),
    path("gates/<uuid:pk>/delegate/", hand_views.delegate, name="delegate"),
    path("gates/<uuid:pk>/break-glass/", hand_views.break_glass, name="break-glass"),
    path("runs/<uuid:run>/steps/<int:position>/question/", views.of_step, name="of-step"),
    path("runs/<uuid:run>/questions/<str:digest>/", views.of_digest, name="of-digest"),
    path("teams/", team_views.team_list, name="team-list"),
    path("teams/<int:pk>/", team_views.team, name="team"),
    path("teams/<int:pk>/times/", team_views.team_times, name="team-times"),
    path("teams/<int:pk>/calendar/", team_views.team_calendar, name="team-calendar"),
    path("teams/<int:pk>/runs/", team_views.team_places, name="team-places"),
    path("filters/", team_views.filter_save, name="filter-save"),
    path("filters/<int:pk>/delete/", team_views.filter_delete, name="filter-delete"),
    path("bulk/", bulk_views.bulk_preview, name="bulk"),
    path("bulk/answer/", bulk_views.bulk_answer, name="bulk-answer"),
    path("grants/", grant_views.grant_list, name="grant-list"),
    path("grants/<uuid:pk>/revoke/", grant_views.grant_revoke, name="grant-revoke"),
    path("settings/", people_views.settings, name="settings"),
    path("settings/deputy/", deputy_views.deputy, name="deputy"),
    path("settings/keys/", people_views.key_create, name="key-create"),
    path("settings/keys/<int:pk>/revoke/", people_views.key_revoke, name="key-revoke"),
    *notify_urls,
]
