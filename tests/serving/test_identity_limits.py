"""How much a token may ask, and how often an address may guess: exact, cheap, bounded, and told before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia.backends.embedded.logs.usage_log import EmbeddedUsage
from evidentia.contracts.control import Role, TokenFacts, TokenId, TokenInfo, TokenLimits
from evidentia.foundation.rate_limit import Rate
from evidentia.serving.identity.admission import MAX_BURST, WRONG, Limiter, share_of
from evidentia.serving.operations.api_errors import ApiError
from evidentia.testing.virtual_time import VirtualClock
from serving.identity_samples import Gate, code_of

if TYPE_CHECKING:
    from pathlib import Path

RATE = 30
HERE = "10.0.0.9"


def token(name: str = "one", *, rate: int | None = None, quota: int | None = None) -> TokenInfo:
    limits = TokenLimits(requests_per_minute=rate, requests_per_day=quota)
    made = VirtualClock().now()
    return TokenInfo(token_id=TokenId(name), name="bob", roles=(Role.READER,), created_at=made, facts=TokenFacts(limits=limits))


def passed(limiter: Limiter, info: TokenInfo, count: int) -> int:
    """Return how many of so many requests were let through."""
    return sum(refusal_of(limiter, info) is None for _ in range(count))


def refusal_of(limiter: Limiter, info: TokenInfo) -> ApiError | None:
    try:
        limiter.count(info)
    except ApiError as refusal:
        return refusal
    return None


# --- shares ---


def test_a_burst_is_a_minute_s_share_within_reason() -> None:
    assert Rate(30, 30) == share_of(30)
    assert Rate(30, 7) == share_of(30, workers=4)
    assert Rate(1, 1) == share_of(1, workers=4)
    assert Rate(10_000_000, MAX_BURST) == share_of(10_000_000)


def test_a_minute_of_rest_allows_as_much_again_and_no_more() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock=clock, requests_per_minute=RATE)
    for rest_s in (0, 60, 6_000):
        clock.advance(rest_s)
        assert RATE == passed(limiter, token("one"), 2 * RATE)


# --- tokens ---


def test_a_token_s_own_rate_wins_over_that_of_the_settings() -> None:
    limiter = Limiter(clock=VirtualClock(), requests_per_minute=RATE)

    assert RATE == passed(limiter, token("one"), 100)
    assert 5 == passed(limiter, token("two", rate=5), 100)
    assert 50 == passed(limiter, token("three", rate=50), 100)


def test_nobody_is_limited_where_nothing_says_so() -> None:
    assert 50_000 == passed(Limiter(clock=VirtualClock()), token(), 50_000)


def test_each_of_several_workers_has_its_share() -> None:
    limiters = [Limiter(clock=VirtualClock(), requests_per_minute=40, workers=4) for _ in range(4)]

    assert [10] * 4 == [passed(limiter, token(), 100) for limiter in limiters]


def test_a_refusal_says_when_to_come_back() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock=clock)
    passed(limiter, token(rate=20), 20)

    refusal = refusal_of(limiter, token(rate=20))

    assert refusal is not None
    assert ((429, "rate_limited"), "3") == (code_of(refusal), refusal.headers["retry-after"])
    clock.advance(3)
    assert refusal_of(limiter, token(rate=20)) is None


def test_a_quota_holds_for_the_day_and_says_when_it_ends(tmp_path: Path) -> None:
    clock = VirtualClock()
    limiter = Limiter(clock=clock, requests_per_day=5, usage=EmbeddedUsage(tmp_path, clock=clock, write_s=0))

    assert 5 == passed(limiter, token("one"), 20)
    assert 2 == passed(limiter, token("two", quota=2), 20)
    clock.advance(3_600)
    refusal = refusal_of(limiter, token("one"))
    assert refusal is not None
    assert (429, "quota_exceeded") == code_of(refusal)
    now = clock.now()
    left_s = 86_400 - now.hour * 3_600 - now.minute * 60 - now.second
    assert str(left_s) == refusal.headers["retry-after"]
    clock.advance(left_s)
    assert 5 == passed(limiter, token("one"), 20)
    limiter.close()


def test_what_the_rate_refuses_costs_nothing_of_the_quota(tmp_path: Path) -> None:
    clock = VirtualClock()
    usage = EmbeddedUsage(tmp_path, clock=clock, write_s=0)
    limiter = Limiter(clock=clock, usage=usage)
    info = token(rate=2, quota=100)

    passed(limiter, info, 50)

    assert 2 == usage.spent(info.token_id)


# --- at the door ---


def test_requests_are_counted_before_roles_are_looked_at(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    issued = gate.issue(roles=(Role.AGENT,), rate=2)

    seen = [code_of(gate.refused(issued.token)) for _ in range(3)]

    assert [(403, "wrong_role"), (403, "wrong_role"), (429, "rate_limited")] == seen


def guess(gate: Gate, count: int, *, client: str | None = HERE) -> None:
    """Show credentials of tokens that nobody has, for which no hash is taken."""
    for _ in range(count):
        gate.refused("evt_x_y", client=client)


def spend_hashes(gate: Gate, left: int) -> None:
    """Use up what an address may have hashed, without the work."""
    for _ in range(WRONG.burst - left):
        gate.limiter.begin_hash(HERE)


def test_guesses_from_one_address_are_refused_before_they_are_hashed(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    known = gate.issue().info.token_id
    spend_hashes(gate, left=2)
    gate.tokens.hashes = 0

    seen = [code_of(gate.refused(f"evt_{known}_guess{number}", client=HERE)) for number in range(5)]

    assert [(401, "invalid_token")] * 2 + [(429, "too_many_attempts")] * 3 == seen
    assert 2 == gate.tokens.hashes


def test_credentials_of_nobody_are_held_back_too(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    guess(gate, WRONG.burst - 1)

    refusals = [gate.refused(wrong, client=HERE) for wrong in ("evt_x_y", "evt_x_y", "garbage")]

    assert [(401, "invalid_token"), (429, "too_many_attempts"), (429, "too_many_attempts")] == [code_of(each) for each in refusals]
    assert "2" == refusals[-1].headers["retry-after"]


def test_garbage_from_an_address_keeps_nobody_out_who_shares_it(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    guess(gate, WRONG.burst + 1)

    assert "bob" == gate.admit(gate.issue("bob").token, client=HERE).token.name


@pytest.mark.parametrize("other", ["10.0.0.8", "2001:db8::1", None])
def test_other_addresses_are_not_held_back(tmp_path: Path, other: str | None) -> None:
    gate = Gate(tmp_path)
    guess(gate, WRONG.burst + 1)

    assert (401, "invalid_token") == code_of(gate.refused("evt_x_y", client=other))


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001:db8::1", "2001:db8::ffff:1"), ("::ffff:10.0.0.9", "10.0.0.9"), (None, "testclient"), ("fe80::1%eth0", "fe80::2")],
)
def test_addresses_of_one_network_are_one(tmp_path: Path, first: str | None, second: str | None) -> None:
    gate = Gate(tmp_path)
    guess(gate, WRONG.burst, client=first)

    assert (429, "too_many_attempts") == code_of(gate.refused("evt_x_y", client=second))


def test_whoever_was_verified_comes_in_from_an_address_that_is_held_back(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    issued, late = gate.issue(), gate.issue("late")
    gate.admit(issued.token, client=HERE)
    spend_hashes(gate, left=0)

    assert issued.info == gate.admit(issued.token, client=HERE).token
    assert (429, "too_many_attempts") == code_of(gate.refused(late.token, client=HERE))
    gate.clock.advance(2)  # one more hash, and past the moment for which a token is believed: the file is asked, and no hash is taken
    assert issued.info == gate.admit(issued.token, client=HERE).token
    assert late.info == gate.admit(late.token, client=HERE).token


def test_tokens_that_hold_cost_an_address_nothing(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    spend_hashes(gate, left=1)
    for name in ("ann", "bob"):
        assert name == gate.admit(gate.issue(name).token, client=HERE).token.name

    known = gate.issue().info.token_id
    assert (401, "invalid_token") == code_of(gate.refused(f"evt_{known}_guess", client=HERE))
    assert (429, "too_many_attempts") == code_of(gate.refused(f"evt_{known}_guess", client=HERE))


def test_without_a_limiter_nobody_is_told_to_wait(tmp_path: Path) -> None:
    gate = Gate(tmp_path, is_limited=False)
    issued: Any = gate.issue(rate=1)

    assert ["bob"] * 3 == [gate.admit(issued.token).token.name for _ in range(3)]
    assert {(401, "invalid_token")} == {code_of(gate.refused("evt_x_y")) for _ in range(WRONG.burst + 5)}
