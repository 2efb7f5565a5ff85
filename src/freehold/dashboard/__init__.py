"""The dashboard: pages for operators, made on the server.

    from freehold.dashboard import dashboard

    site = Starlette(routes=[Mount("/queue", app=dashboard(app))])

Every page is a row of a route table (`TABLE`), as every path of the API is. Pages read and change
jobs through `operator`, and work without JavaScript.
"""

from freehold.errors import BadSettings

try:
    from freehold.dashboard.application import TABLE, dashboard
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("jinja2", "markupsafe", "starlette"):
        raise
    raise BadSettings(
        f"the dashboard needs more packages ({error}): install `freehold[http]`"
    ) from None

__all__ = ["TABLE", "dashboard"]
