from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from obversa_site import accounts, health, metrics
from obversa_site.api import api

urlpatterns = [
    path("", include("gates.urls")),
    path("", include("runs.urls")),
    path("operations/", include("obversa_site.operations.urls")),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-in/link/", accounts.sign_in_by_link, name="sign-in-link"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler400 = "obversa_site.errors.bad_request"
handler403 = "obversa_site.errors.forbidden"
handler404 = "obversa_site.errors.not_found"
handler500 = "obversa_site.errors.failed"
