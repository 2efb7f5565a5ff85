"""The HTTP API: everything that `app.operator` can do, as JSON.

from freehold.http import api

application = api(app)      # an ASGI application, to serve or to mount into another
"""

from freehold.errors import BadSettings
from freehold.http_auth import Caller, Role

try:
    from freehold.http.asgi import api
except ImportError as error:
    if (error.name or "").partition(".")[0] != "starlette":
        raise
    raise BadSettings(f"the HTTP API needs starlette ({error}): install `freehold[http]`") from None

__all__ = ["Caller", "Role", "api"]
