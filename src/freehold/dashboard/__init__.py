"""The dashboard: pages for operators, made on the server.

    from freehold.dashboard import dashboard

    site = Starlette(routes=[Mount("/queue", app=dashboard(app))])

Every page is a row of a route table (`TABLE`), as every path of the API is. Pages read and change
jobs through `operator`, and work without JavaScript.
"""

from freehold.dashboard.application import TABLE, dashboard

__all__ = ["TABLE", "dashboard"]
