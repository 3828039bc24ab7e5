from __future__ import annotations

from django.urls import path

from runs import views

app_name = "runs"
urlpatterns = [
    path("runs/", views.run_list, name="run-list"),
    path("runs/<uuid:pk>/", views.run, name="run"),
    path("runs/<uuid:pk>/cancel/", views.cancel, name="run-cancel"),
    path("runs/<uuid:pk>/resume/", views.resume, name="run-resume"),
    path("runs/<uuid:pk>/retry/", views.retry, name="run-retry"),
    path("runs/<uuid:pk>/rerun/", views.rerun, name="run-rerun"),
    path("runs/<uuid:pk>/artifacts/<str:digest>/", views.artifact, name="artifact"),
    path("workflows/", views.workflow_list, name="workflow-list"),
    path("workflows/<path:name>/start/", views.start, name="start"),
]
