"""The way in and out: a key that is pasted, a link that works once, and signing out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.serving.dashboard import http_headers
from evidentia.serving.dashboard.dashboard_app import HOME, SIGN_IN, DashboardApp, own_path
from evidentia.serving.dashboard.form_guard import form_of, require_csrf
from evidentia.serving.identity.host_check import client_of
from evidentia.serving.operations.api_errors import UNAUTHORIZED, ApiError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.identity.admission import Identity

NOTES: Final = {
    "expired": "Your session has ended. Sign in to go on where you were.",
    "needed": "Sign in to see this page.",
    "out": "You are signed out.",
    "used": "This link was used before, or it is too old. Ask for another, or paste a key.",
}
_ELSEWHERE: Final = ("cross-site", "same-site")
MAX_CODE_LENGTH: Final = 200
MAX_CREDENTIAL_LENGTH: Final = 10_000


async def show_sign_in(app: DashboardApp, request: Request) -> Response:
    """Show the form for a key."""
    note = NOTES.get(request.query_params.get("note", ""), "")
    return _form(app, request, note=note, back=own_path(request.query_params.get("next", HOME)))


async def sign_in(app: DashboardApp, request: Request) -> Response:
    """Take a key, and begin a session."""
    form = await form_of(request)
    credential, back = str(form.get("key", "")).strip(), own_path(str(form.get("next", HOME)))
    try:
        identity = await app.context.admission.identify(credential[:MAX_CREDENTIAL_LENGTH], client=client_of(request))
    except ApiError as refusal:
        if refusal.status != UNAUTHORIZED:
            raise
        problem = "Paste a key to sign in." if not credential else "This key is unknown, has expired, or was revoked."
        return _form(app, request, problem=problem, back=back, status=refusal.status)
    return await _begin(app, request, identity, back=back)


async def show_link(app: DashboardApp, request: Request) -> Response:
    """Ask whether to use a link: whatever fetches it beforehand, a preview say, must not use it up."""
    code = request.query_params.get("code", "")[:MAX_CODE_LENGTH]
    return app.render(request, "enter.html", code=code)


async def use_link(app: DashboardApp, request: Request) -> Response:
    """Use up the code of a link, and begin a session."""
    code = str((await form_of(request)).get("code", ""))[:MAX_CODE_LENGTH]
    try:
        identity = await app.links.redeem(code, client=client_of(request))
    except ApiError as refusal:
        if refusal.status != UNAUTHORIZED:
            raise
        return app.redirect(request, f"{SIGN_IN}?note=used")
    return await _begin(app, request, identity, back=HOME)


async def sign_out(app: DashboardApp, request: Request) -> Response:
    """End the session, here and in the browser."""
    key = http_headers.key_in(request)
    session = await app.sessions.find(key) if key else None
    if session is not None:
        await require_csrf(request, session)
        await app.sessions.close(key)
    response = app.redirect(request, f"{SIGN_IN}?note=out")
    http_headers.drop_key(response, request)
    return response


async def _begin(app: DashboardApp, request: Request, identity: Identity, *, back: str) -> Response:
    app.context.admission.sign_in(identity, client=client_of(request))
    signed_in = await app.sessions.open(identity, replacing=http_headers.key_in(request))
    response = app.redirect(request, back)
    http_headers.keep_key(response, request, signed_in.cookie, max_age_s=signed_in.max_age_s)
    return response


def _form(app: DashboardApp, request: Request, *, back: str, note: str = "", problem: str = "", status: int = 200) -> Response:
    # The cookie is not sent with links that stand on other sites, so somebody who is signed in may end up here.
    is_from_elsewhere = request.headers.get("sec-fetch-site") in _ELSEWHERE and back != HOME
    return app.render(request, "sign_in.html", status=status, note=note, problem=problem, back=back, is_from_elsewhere=is_from_elsewhere)


ROUTES: Final = (
    (SIGN_IN, show_sign_in, ("GET",)),
    (SIGN_IN, sign_in, ("POST",)),
    ("/dashboard/enter", show_link, ("GET",)),
    ("/dashboard/enter", use_link, ("POST",)),
    ("/dashboard/sign-out", sign_out, ("POST",)),
)
"""Path, what answers, and methods."""
