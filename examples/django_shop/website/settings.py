"""Settings of the shop, from the environment."""

import os
from pathlib import Path

import django

SECRET_KEY = os.environ.get("SHOP_SECRET", "only for development")
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "website.urls"
WSGI_APPLICATION = "website.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

if "SHOP_DATABASE" in os.environ:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["SHOP_DATABASE"],
            "HOST": os.environ.get("SHOP_HOST", ""),
            "PORT": os.environ.get("SHOP_PORT", ""),
            "USER": os.environ.get("SHOP_USER", ""),
            "CONN_MAX_AGE": 60,
        }
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ.get("SHOP_FILE", Path(__file__).parents[1] / "shop.db"),
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        }
    }

INSTALLED_APPS = [
    # Django 6 has tasks of its own.
    *(["django_tasks"] if django.VERSION < (6, 0) else []),
    "freehold.contrib.django",
    "shop",
]
TASKS = {"default": {"BACKEND": "freehold.contrib.django.FreeholdBackend"}}
