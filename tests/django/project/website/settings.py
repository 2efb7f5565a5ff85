"""SHOP_DATABASE is a file, or the URL of a PostgreSQL database."""

import os
from typing import Any

from psycopg.conninfo import conninfo_to_dict

try:
    import django.tasks  # noqa: F401

    BACKPORT: list[str] = []
except ImportError:
    BACKPORT = ["django_tasks"]

_where = os.environ["SHOP_DATABASE"]


def _database() -> dict[str, Any]:
    if not _where.startswith("postgresql:"):
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": _where,
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 60},
            # A file: threads and processes share it.
            "TEST": {"NAME": f"{_where}.test"},
        }
    given = conninfo_to_dict(_where)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.pop("dbname"),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", ""),
        "PORT": given.pop("port", ""),
        "CONN_MAX_AGE": int(os.environ.get("SHOP_CONN_MAX_AGE", "0")),
        "OPTIONS": given,
    }


DATABASES = {"default": _database()}
# Without these, the tables of a project are there in a moment.
ADMIN = (
    [
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
    ]
    if "SHOP_ADMIN" in os.environ
    else []
)
INSTALLED_APPS = [
    *ADMIN,
    *BACKPORT,
    "freehold.contrib.django",
    "shop",
]
TASKS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": os.environ.get("SHOP_BACKEND", "freehold.contrib.django.FreeholdBackend"),
        "QUEUES": [],
    },
}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": ADMIN
            and [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    },
]
MIDDLEWARE = ADMIN and [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "website.urls"
STATIC_URL = "/static/"
SECRET_KEY = "for tests"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
