"""The files of the dashboard: style, scripts, icon. Their address has a digest of their content, so
that browsers keep them until the next version."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import msgspec
from starlette.responses import Response

from freehold.dashboard.page_request import PageRequest
from freehold.http.problems import ApiError
from freehold.http.routes import Routes
from freehold.http_auth import Role

routes = Routes()
_TYPES = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "vendor/htmx.min.js": "text/javascript",
    "vendor/hx-sse.min.js": "text/javascript",
    "vendor/hx-ptag.min.js": "text/javascript",
}
FOR_EVER = "public, max-age=31536000, immutable"


class FilePath(msgspec.Struct, frozen=True):
    version: str
    file: str


@cache
def static_files() -> dict[str, bytes]:
    folder = files("freehold.dashboard") / "static"
    return {name: (folder / name).read_bytes() for name in _TYPES}


@cache
def version() -> str:
    """Of all files together."""
    digest = hashlib.sha256()
    for name, content in static_files().items():
        digest.update(name.encode() + content)
    return digest.hexdigest()[:16]


@routes.get("/static/{version}/{file}", Role.ANYONE, path=FilePath, responses={200: bytes})
async def static_file(request: PageRequest) -> Response:
    """A file of the dashboard."""
    path: FilePath = request.path
    content = static_files().get(path.file)
    if content is None or path.version != version():
        raise ApiError(404, "Not found", "there is no such file")
    return Response(content, headers={"Cache-Control": FOR_EVER}, media_type=_TYPES[path.file])
