from django.apps import apps
from django.urls import path

urlpatterns = []
if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    from freehold.contrib.django.dashboard import dashboard_urls

    urlpatterns += [path("admin/", admin.site.urls), path("queue/", dashboard_urls())]
