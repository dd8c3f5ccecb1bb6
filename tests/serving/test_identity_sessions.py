"""Sessions of the dashboard and the links into it: bound to a token, used up, and nothing of their secrets kept."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role, TokenId
from evidentia.serving.identity import sessions as links_module
from evidentia.serving.identity import sessions as sessions_module
from evidentia.serving.identity.admission import WRONG
from evidentia.serving.identity.sessions import HOLDS_S, IDLE_S, MAX_OF_ONE, RECHECK_NS, Links, SessionStore, hash_of, new_code
from evidentia.serving.operations.api_errors import ApiError
from serving.identity_samples import Gate, code_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.identity.sessions import SignedIn

RECHECK_S = RECHECK_NS / 1e9
LASTS_S = 4 * IDLE_S


class Desk:
    """Sessions and links over one gate, with somebody who has a token."""

    def __init__(self, directory: Path, *, most: int = 100) -> None:
        self.gate = Gate(directory)
        parts: dict[str, Any] = {"notes": self.gate.policies, "clock": self.gate.clock, "entropy": self.gate.entropy}
        self.sessions = SessionStore(self.gate.admission, session_s=LASTS_S, most=most, **parts)
        self.links = Links(self.gate.admission, most=most, **parts)
        self.issued = self.gate.issue("ann", roles=(Role.ADMIN,), expires_at=self.gate.clock.now() + timedelta(hours=3))
        self.identity: Identity = run(self.gate.admission.identify(self.issued.token))

    def sign_in(self, identity: Identity | None = None, **more: Any) -> SignedIn:
        signed_in: SignedIn = run(self.sessions.open(identity or self.identity, **more))
        return signed_in

    def is_in(self, cookie: str) -> bool:
        return run(self.sessions.find(cookie)) is not None

    def redeem(self, code: str, **more: Any) -> Identity:
        identity: Identity = run(self.links.redeem(code, **more))
        return identity

    def worthless(self, code: str, **more: Any) -> tuple[int, str]:
        with pytest.raises(ApiError) as raised:
            self.redeem(code, **more)
        return code_of(raised.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- sessions ---


def test_a_cookie_opens_its_session_and_no_other(desk: Desk) -> None:
    one, two = desk.sign_in(), desk.sign_in()
    found = run(desk.sessions.find(one.cookie))

    assert desk.identity == found.identity
    assert one.session.csrf == found.csrf
    assert 4 == len({one.cookie, two.cookie, one.session.csrf, two.session.csrf})
    assert all(43 == len(secret) for secret in (one.cookie, one.session.csrf))
    assert LASTS_S == one.max_age_s
    for wrong in ("", one.cookie[:-1], one.cookie + "a", one.session.csrf, "x" * 10_000, "\ud800"):
        assert not desk.is_in(wrong)


def test_a_form_of_another_session_is_not_accepted(desk: Desk) -> None:
    one, two = desk.sign_in().session, desk.sign_in().session

    assert one.accepts(one.csrf)
    assert [False] * 5 == [one.accepts(wrong) for wrong in (two.csrf, "", one.csrf[:-1], "ü", "\ud800")]


def test_a_session_ends_when_nothing_is_heard_of_it(desk: Desk) -> None:
    kept, idle = desk.sign_in().cookie, desk.sign_in().cookie
    desk.gate.clock.advance(IDLE_S - 1)
    assert desk.is_in(kept)
    desk.gate.clock.advance(1)

    assert desk.is_in(kept)
    assert not desk.is_in(idle)
    assert 1 == len(desk.sessions)


def test_a_session_ends_with_its_time_however_busy_it_is(desk: Desk) -> None:
    forever = desk.gate.issue("bob")
    cookie = desk.sign_in(run(desk.gate.admission.identify(forever.token))).cookie
    for _ in range(LASTS_S // 1_800 - 1):
        desk.gate.clock.advance(1_800)
        assert desk.is_in(cookie)
    desk.gate.clock.advance(1_800)

    assert not desk.is_in(cookie)


def test_a_session_ends_when_its_token_expires(desk: Desk) -> None:
    cookie = desk.sign_in().cookie
    for _ in range(5):
        desk.gate.clock.advance(1_800)
        assert desk.is_in(cookie)
    desk.gate.clock.advance(1_800)

    assert not desk.is_in(cookie)


def test_a_session_ends_within_seconds_of_its_token_being_revoked_elsewhere(desk: Desk, tmp_path: Path) -> None:
    cookie = desk.sign_in().cookie
    elsewhere = Gate(tmp_path)
    elsewhere.tokens.revoke(desk.issued.info.token_id, tenant=None, by="another process")

    assert desk.is_in(cookie)
    desk.gate.clock.advance(RECHECK_S)
    assert not desk.is_in(cookie)
    assert 0 == len(desk.sessions)


def test_signing_in_again_ends_the_session_one_came_with(desk: Desk) -> None:
    first = desk.sign_in()
    second = desk.sign_in(replacing=first.cookie)

    assert first.cookie != second.cookie
    assert not desk.is_in(first.cookie)
    assert desk.is_in(second.cookie)


def test_signing_out_ends_a_session_once(desk: Desk) -> None:
    cookie = desk.sign_in().cookie

    assert run(desk.sessions.close(cookie))
    assert not run(desk.sessions.close(cookie))
    assert not desk.is_in(cookie)


def test_signing_out_wins_over_a_check_that_is_under_way(desk: Desk) -> None:
    cookie = desk.sign_in().cookie
    desk.gate.clock.advance(RECHECK_S)

    async def both() -> object:
        finding = asyncio.create_task(desk.sessions.find(cookie))
        await asyncio.sleep(0)
        await desk.sessions.close(cookie)
        return await finding

    assert run(both()) is None
    assert not desk.is_in(cookie)


def test_one_token_has_so_many_sessions_and_crowds_out_nobody(desk: Desk) -> None:
    other = desk.sign_in(run(desk.gate.admission.identify(desk.gate.issue("bob").token))).cookie
    cookies = [desk.sign_in().cookie for _ in range(MAX_OF_ONE + 3)]

    assert [False] * 3 + [True] * MAX_OF_ONE == [desk.is_in(cookie) for cookie in cookies]
    assert desk.is_in(other)


def test_there_are_no_more_sessions_than_so_many(tmp_path: Path) -> None:
    desk = Desk(tmp_path, most=5)
    cookies = [desk.sign_in().cookie for _ in range(5)]
    assert desk.is_in(cookies[0])
    desk.sign_in()

    assert 5 == len(desk.sessions)
    assert [True, False, True] == [desk.is_in(cookie) for cookie in cookies[:3]]


def test_the_audit_tells_who_came_and_went_and_no_secret(desk: Desk) -> None:
    signed_in = desk.sign_in()
    run(desk.sessions.close(signed_in.cookie))
    code = desk.links.make(desk.issued.info.token_id)
    desk.redeem(code)

    told = [(change, by) for kind, change, by in desk.gate.changes() if kind == "session"]
    who = f"ann ({desk.issued.info.token_id})"
    assert [("signed in", who), ("signed out", who), ("link used", who)] == told
    written = repr(list(desk.gate.policies.audit(tenant="acme")))
    assert not [secret for secret in (signed_in.cookie, signed_in.session.csrf, code) if secret in written]


def test_nothing_that_lets_anybody_in_is_kept_or_shown(desk: Desk) -> None:
    signed_in = desk.sign_in()
    code = desk.links.make(desk.issued.info.token_id)
    secrets = (signed_in.cookie, signed_in.session.csrf, code)
    shown = repr((signed_in, signed_in.session, desk.sessions, desk.links, desk.sessions._kept))
    kept = pickle.dumps((list(desk.sessions._kept), desk.links._waiting))

    assert not [secret for secret in secrets if secret in shown]
    assert not [secret for secret in secrets if secret.encode() in kept]


def test_secrets_are_compared_in_constant_time() -> None:
    for module in (sessions_module, links_module):
        assert "hmac.compare_digest(" in inspect.getsource(module)


# --- links ---


def test_a_link_opens_once_as_the_holder_of_its_token(desk: Desk) -> None:
    code = desk.links.make(desk.issued.info.token_id)

    assert desk.identity == desk.redeem(code)
    assert (401, "invalid_link") == desk.worthless(code)


def test_of_two_who_use_a_link_at_once_one_comes_in(desk: Desk) -> None:
    code = desk.links.make(desk.issued.info.token_id)

    async def both() -> list[object]:
        return [*await asyncio.gather(desk.links.redeem(code), desk.links.redeem(code), return_exceptions=True)]

    assert [False, True] == [isinstance(outcome, ApiError) for outcome in run(both())]


def test_a_link_holds_for_an_hour(desk: Desk) -> None:
    early, late = desk.links.make(desk.issued.info.token_id), desk.links.make(desk.issued.info.token_id)
    desk.gate.clock.advance(HOLDS_S - 1)
    desk.redeem(early)
    desk.gate.clock.advance(1)

    assert (401, "invalid_link") == desk.worthless(late)


def test_a_link_of_a_token_that_does_not_hold_opens_nothing(desk: Desk) -> None:
    code, nobody = desk.links.make(desk.issued.info.token_id), desk.links.make(TokenId("nobody"))
    desk.gate.tokens.revoke(desk.issued.info.token_id, tenant=None, by="test")

    assert [(401, "invalid_link")] * 2 == [desk.worthless(each) for each in (code, nobody)]


def test_a_link_made_elsewhere_is_known_by_its_hash(desk: Desk) -> None:
    code = new_code(desk.gate.entropy)
    desk.links.expect(hash_of(code), token_id=desk.issued.info.token_id)

    assert (401, "invalid_link") == desk.worthless(hash_of(code))
    assert desk.identity == desk.redeem(code)


def test_guessed_links_are_held_back(desk: Desk) -> None:
    code = desk.links.make(desk.issued.info.token_id)
    seen = [desk.worthless(f"guess {number}", client="10.0.0.9") for number in range(WRONG.burst + 1)]

    assert [(401, "invalid_link")] * WRONG.burst + [(429, "too_many_attempts")] == seen
    assert desk.identity == desk.redeem(code, client="10.0.0.8")


@pytest.mark.parametrize("code", ["", "x" * 100_000, "\ud800", "ü"])
def test_what_is_no_code_opens_nothing(desk: Desk, code: str) -> None:
    assert (401, "invalid_link") == desk.worthless(code)


def test_no_more_links_wait_than_so_many(tmp_path: Path) -> None:
    desk = Desk(tmp_path, most=3)
    codes = [desk.links.make(desk.issued.info.token_id) for _ in range(4)]

    assert (401, "invalid_link") == desk.worthless(codes[0])
    assert desk.identity == desk.redeem(codes[1])
