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
from evidentia.serving.identity.admission import WRONG, Admission
from evidentia.serving.identity.sessions import HOLDS_S, IDLE_S, MAX_OF_ONE, RECHECK_NS, Links, SessionStore, hash_of, new_code
from evidentia.serving.operations.api_errors import ApiError
from evidentia.testing.determinism import RepeatableEntropy
from jwt_samples import Provider, ec_key, jwk, key_set
from serving.identity_samples import Gate, code_of, run

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.identity.sessions import SignedIn

RECHECK_S = RECHECK_NS / 1e9
LASTS_S = 4 * IDLE_S


class SessionBench:
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
def bench(tmp_path: Path) -> SessionBench:
    return SessionBench(tmp_path)


# --- sessions ---


def test_a_cookie_opens_its_session_and_no_other(bench: SessionBench) -> None:
    one, two = bench.sign_in(), bench.sign_in()
    found = run(bench.sessions.find(one.cookie))

    assert bench.identity == found.identity
    assert one.session.csrf == found.csrf
    assert 4 == len({one.cookie, two.cookie, one.session.csrf, two.session.csrf})
    assert all(43 == len(secret) for secret in (one.cookie, one.session.csrf))
    assert LASTS_S == one.max_age_s
    for wrong in ("", one.cookie[:-1], one.cookie + "a", one.session.csrf, "x" * 10_000, "\ud800"):
        assert not bench.is_in(wrong)


def test_a_form_of_another_session_is_not_accepted(bench: SessionBench) -> None:
    one, two = bench.sign_in().session, bench.sign_in().session

    assert one.accepts(one.csrf)
    assert [False] * 5 == [one.accepts(wrong) for wrong in (two.csrf, "", one.csrf[:-1], "ü", "\ud800")]


def test_a_session_ends_when_nothing_is_heard_of_it(bench: SessionBench) -> None:
    kept, idle = bench.sign_in().cookie, bench.sign_in().cookie
    bench.gate.clock.advance(IDLE_S - 1)
    assert bench.is_in(kept)
    bench.gate.clock.advance(1)

    assert bench.is_in(kept)
    assert not bench.is_in(idle)
    assert 1 == len(bench.sessions)


def test_a_session_ends_with_its_time_however_busy_it_is(bench: SessionBench) -> None:
    forever = bench.gate.issue("bob")
    cookie = bench.sign_in(run(bench.gate.admission.identify(forever.token))).cookie
    for _ in range(LASTS_S // 1_800 - 1):
        bench.gate.clock.advance(1_800)
        assert bench.is_in(cookie)
    bench.gate.clock.advance(1_800)

    assert not bench.is_in(cookie)


def test_a_session_ends_when_its_token_expires(bench: SessionBench) -> None:
    cookie = bench.sign_in().cookie
    for _ in range(5):
        bench.gate.clock.advance(1_800)
        assert bench.is_in(cookie)
    bench.gate.clock.advance(1_800)

    assert not bench.is_in(cookie)


def test_a_session_ends_within_seconds_of_its_token_being_revoked_elsewhere(bench: SessionBench, tmp_path: Path) -> None:
    cookie = bench.sign_in().cookie
    elsewhere = Gate(tmp_path)
    elsewhere.tokens.revoke(bench.issued.info.token_id, tenant=None, by="another process")

    assert bench.is_in(cookie)
    bench.gate.clock.advance(RECHECK_S)
    assert not bench.is_in(cookie)
    assert 0 == len(bench.sessions)


def test_signing_in_again_ends_the_session_one_came_with(bench: SessionBench) -> None:
    first = bench.sign_in()
    second = bench.sign_in(replacing=first.cookie)

    assert first.cookie != second.cookie
    assert not bench.is_in(first.cookie)
    assert bench.is_in(second.cookie)


def test_signing_out_ends_a_session_once(bench: SessionBench) -> None:
    cookie = bench.sign_in().cookie

    assert run(bench.sessions.close(cookie))
    assert not run(bench.sessions.close(cookie))
    assert not bench.is_in(cookie)


def test_signing_out_wins_over_a_check_that_is_under_way(bench: SessionBench) -> None:
    cookie = bench.sign_in().cookie
    bench.gate.clock.advance(RECHECK_S)

    async def both() -> object:
        finding = asyncio.create_task(bench.sessions.find(cookie))
        await asyncio.sleep(0)
        await bench.sessions.close(cookie)
        return await finding

    assert run(both()) is None
    assert not bench.is_in(cookie)


def test_one_token_has_so_many_sessions_and_crowds_out_nobody(bench: SessionBench) -> None:
    other = bench.sign_in(run(bench.gate.admission.identify(bench.gate.issue("bob").token))).cookie
    cookies = [bench.sign_in().cookie for _ in range(MAX_OF_ONE + 3)]

    assert [False] * 3 + [True] * MAX_OF_ONE == [bench.is_in(cookie) for cookie in cookies]
    assert bench.is_in(other)


def test_there_are_no_more_sessions_than_so_many(tmp_path: Path) -> None:
    bench = SessionBench(tmp_path, most=5)
    cookies = [bench.sign_in().cookie for _ in range(5)]
    assert bench.is_in(cookies[0])
    bench.sign_in()

    assert 5 == len(bench.sessions)
    assert [True, False, True] == [bench.is_in(cookie) for cookie in cookies[:3]]


def test_the_audit_tells_who_came_and_went_and_no_secret(bench: SessionBench) -> None:
    signed_in = bench.sign_in()
    run(bench.sessions.close(signed_in.cookie))
    code = bench.links.make(bench.issued.info.token_id)
    bench.redeem(code)

    told = [(change, by) for kind, change, by in bench.gate.changes() if kind == "session"]
    who = f"ann ({bench.issued.info.token_id})"
    assert [("signed in", who), ("signed out", who), ("link used", who)] == told
    written = repr(list(bench.gate.policies.audit(tenant="acme")))
    assert not [secret for secret in (signed_in.cookie, signed_in.session.csrf, code) if secret in written]


def test_nothing_that_lets_anybody_in_is_kept_or_shown(bench: SessionBench) -> None:
    signed_in = bench.sign_in()
    code = bench.links.make(bench.issued.info.token_id)
    secrets = (signed_in.cookie, signed_in.session.csrf, code)
    shown = repr((signed_in, signed_in.session, bench.sessions, bench.links, bench.sessions._kept))
    kept = pickle.dumps((list(bench.sessions._kept), bench.links._waiting))

    assert not [secret for secret in secrets if secret in shown]
    assert not [secret for secret in secrets if secret.encode() in kept]


def test_secrets_are_compared_in_constant_time() -> None:
    for module in (sessions_module, links_module):
        assert "hmac.compare_digest(" in inspect.getsource(module)


# --- links ---


def test_a_link_opens_once_as_the_holder_of_its_token(bench: SessionBench) -> None:
    code = bench.links.make(bench.issued.info.token_id)

    assert bench.identity == bench.redeem(code)
    assert (401, "invalid_link") == bench.worthless(code)


def test_of_two_who_use_a_link_at_once_one_comes_in(bench: SessionBench) -> None:
    code = bench.links.make(bench.issued.info.token_id)

    async def both() -> list[object]:
        return [*await asyncio.gather(bench.links.redeem(code), bench.links.redeem(code), return_exceptions=True)]

    assert [False, True] == [isinstance(outcome, ApiError) for outcome in run(both())]


def test_a_link_holds_for_an_hour(bench: SessionBench) -> None:
    early, late = bench.links.make(bench.issued.info.token_id), bench.links.make(bench.issued.info.token_id)
    bench.gate.clock.advance(HOLDS_S - 1)
    bench.redeem(early)
    bench.gate.clock.advance(1)

    assert (401, "invalid_link") == bench.worthless(late)


def test_a_link_of_a_token_that_does_not_hold_opens_nothing(bench: SessionBench) -> None:
    code, nobody = bench.links.make(bench.issued.info.token_id), bench.links.make(TokenId("nobody"))
    bench.gate.tokens.revoke(bench.issued.info.token_id, tenant=None, by="test")

    assert [(401, "invalid_link")] * 2 == [bench.worthless(each) for each in (code, nobody)]


def test_a_link_made_elsewhere_is_known_by_its_hash(bench: SessionBench) -> None:
    code = new_code(bench.gate.entropy)
    bench.links.expect(hash_of(code), token_id=bench.issued.info.token_id)

    assert (401, "invalid_link") == bench.worthless(hash_of(code))
    assert bench.identity == bench.redeem(code)


def test_guessed_links_are_held_back(bench: SessionBench) -> None:
    code = bench.links.make(bench.issued.info.token_id)
    seen = [bench.worthless(f"guess {number}", client="10.0.0.9") for number in range(WRONG.burst + 1)]

    assert [(401, "invalid_link")] * WRONG.burst + [(429, "too_many_attempts")] == seen
    assert bench.identity == bench.redeem(code, client="10.0.0.8")


@pytest.mark.parametrize("code", ["", "x" * 100_000, "\ud800", "ü"])
def test_what_is_no_code_opens_nothing(bench: SessionBench, code: str) -> None:
    assert (401, "invalid_link") == bench.worthless(code)


def test_no_more_links_wait_than_so_many(tmp_path: Path) -> None:
    bench = SessionBench(tmp_path, most=3)
    codes = [bench.links.make(bench.issued.info.token_id) for _ in range(4)]

    assert (401, "invalid_link") == bench.worthless(codes[0])
    assert bench.identity == bench.redeem(codes[1])


# --- signed tokens ---


def test_a_session_of_a_signed_token_ends_with_the_key_that_signed_it(tmp_path: Path) -> None:
    provider = Provider(tmp_path, keys=key_set(jwk(ec_key(), kid="one"), jwk(ec_key(1), kid="two")))
    admission = Admission(Gate(tmp_path).tokens, signed=provider.verifier)
    parts: dict[str, Any] = {"notes": Gate(tmp_path).policies, "clock": provider.clock, "entropy": RepeatableEntropy()}
    sessions = SessionStore(admission, session_s=LASTS_S, **parts)
    cookies = {
        kid: run(sessions.open(run(admission.identify(provider.token(key=key, kid=kid))))).cookie
        for kid, key in (("one", ec_key()), ("two", ec_key(1)))
    }

    def are_in() -> dict[str, bool]:
        provider.clock.advance(RECHECK_S + 0.1)
        return {kid: run(sessions.find(cookie)) is not None for kid, cookie in cookies.items()}

    assert {"one": True, "two": True} == are_in()
    provider.file.write_bytes(key_set(jwk(ec_key(1), kid="renamed")))
    assert {"one": False, "two": True} == are_in()
    provider.file.unlink()
    assert {"one": False, "two": False} == are_in()
