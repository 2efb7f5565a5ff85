from django.apps import apps
from django.urls import path

urlpatterns = []
if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    urlpatterns.append(path("admin/", admin.site.urls))
