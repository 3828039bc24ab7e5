from __future__ import annotations

from django.urls import path

from obversa_site.operations import views

app_name = "operations"
urlpatterns = [
    path("", views.operations, name="operations"),
    path("notifications/<uuid:uid>/again/", views.send_again, name="send-again"),
]
