"""The HTTP API: what `operate` can do, as JSON, for programs and for people with curl.

from leasehold.http import api

application = api(app)      # an ASGI application, to be served or mounted into another
"""

from leasehold.http.service import api

__all__ = ["api"]
