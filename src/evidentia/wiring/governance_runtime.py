"""Which parts govern a base: its policies, its log, its tokens and secrets, the judge, and the texts that citations name."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME, KEY_VARIABLE, EmbeddedSecrets, GovernanceFile
from evidentia.backends.embedded.governance.policy_store import EmbeddedPolicies
from evidentia.backends.embedded.governance.token_store import EmbeddedTokens
from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.backends.embedded.logs.usage_log import EmbeddedUsage
from evidentia.backends.embedded.records.reader import EmbeddedReader
from evidentia.contracts.errors import BaseMissingError, MissingExtraError
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.contracts.ports import Clock, Entropy, Governor, SourceTexts
from evidentia.governance.governor import CompiledPolicies, LocalGovernor, LoggedAnswers
from evidentia.policy.access import access_scope
from evidentia.policy.evaluator import PolicySet
from evidentia.policy.rules import check_policy
from evidentia.wiring.settings_file import has_base, read_settings
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.backends.jwt.jwt_verifier import JwtVerifier
    from evidentia.backends.llm.judge import ModelJudge
    from evidentia.backends.remote.remote_governor import RemoteGovernor
    from evidentia.contracts.access import Principal
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.contracts.runs import RunFacts
    from evidentia.contracts.settings import JwtSettings
    from evidentia.governance.governed_runs import LocalRun


LOCAL_SCORER: Final = "words"
"""The judge `local:words`: nothing leaves the machine."""
TokenStore: TypeAlias = EmbeddedTokens
"""What issues, verifies and revokes bearer tokens."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class BaseTexts(SourceTexts):
    """Implements `SourceTexts` over the documents of a base: a citation is the id of a chunk or of a document."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Return the text of a chunk, or of a whole document; None for what is not there or not for this principal."""
        return self._reader.text_of(citation, scope=access_scope(principal, acl_scope=None, rules=self._rules))

    def close(self) -> None:
        """Give back what is held."""
        if "_reader" in self.__dict__:
            self._reader.close()

    @cached_property
    def _reader(self) -> EmbeddedReader:
        return EmbeddedReader(self._directory)

    @cached_property
    def _rules(self) -> Sequence[str]:
        return read_settings(self._directory).access.rules


class PrincipalGovernor(Governor):
    """Implements `Governor` for one principal: what its runs cite is what that principal may read."""

    def __init__(self, control: GovernanceRuntime, principal: Principal) -> None:
        self._control = control
        self._principal = principal

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> LocalRun:
        """Begin a run of the tenant that its facts name."""
        governor = self._control.governor_of(facts.tenant)
        return governor.start(facts, policies=policies, is_enforced=is_enforced, principal=self._principal)


class GovernanceRuntime(Governor):
    """The parts that govern one base; implements `Governor` for every tenant of it. Thread safe.

    A judge's key is a secret of the tenant; the variables of the environment are those of the operator, whose tenant is the default one:
    another tenant without a key has no judge behind a provider. `judge_urls` puts another address in the place of a
    provider's own, by the provider's word.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        is_durable: bool = False,
        judge_urls: Mapping[str, str] = _NOTHING,
    ) -> None:
        if not has_base(directory):
            raise BaseMissingError(str(directory))
        self.clock = clock or SystemClock()
        self.entropy = entropy or SystemEntropy()
        self.directory = directory
        self._is_durable = is_durable
        self._judge_urls = judge_urls
        self._file = GovernanceFile(directory / GOVERNANCE_NAME)
        self.policies = EmbeddedPolicies(self._file, check=check_policy, clock=self.clock)
        self.tokens = EmbeddedTokens(self._file, clock=self.clock, entropy=self.entropy)
        self.secrets = EmbeddedSecrets(self._file, master_key=lambda: os.environ.get(KEY_VARIABLE), clock=self.clock, entropy=self.entropy)
        self.log = EmbeddedDecisionLog(directory, clock=self.clock, entropy=self.entropy, is_durable=is_durable)
        self._compiled = CompiledPolicies()
        self._lock = threading.Lock()
        self._governors: dict[str, LocalGovernor] = {}
        self._in_force: dict[str, tuple[Sequence[StoredPolicy], PolicySet]] = {}
        self._judges: list[ModelJudge] = []
        self._texts = BaseTexts(directory)

    @cached_property
    def version(self) -> str:
        """Return the version of Evidentia."""
        from importlib.metadata import version

        return version("evidentia")

    def governor_of(self, tenant: str) -> LocalGovernor:
        """Return what starts the runs of a tenant; its judge has that tenant's keys, and reads what whoever runs may read."""
        with self._lock:
            if tenant not in self._governors:
                self._governors[tenant] = self._make_governor(tenant)
            return self._governors[tenant]

    @cached_property
    def answers(self) -> LoggedAnswers:
        """Return what writes down what policies said of answers."""
        return LoggedAnswers(self.log, clock=self.clock)

    def in_force(self, tenant: str) -> PolicySet:
        """Return a tenant's policies, compiled; the same object while nothing changes."""
        live = self.policies.live(tenant=tenant)
        known = self._in_force.get(tenant)
        if known is None or known[0] is not live:
            known = self._in_force[tenant] = (live, PolicySet.of(each.policy for each in live))
        return known[1]

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> LocalRun:
        """Begin a run of the tenant that its facts name."""
        return self.governor_of(facts.tenant).start(facts, policies=policies, is_enforced=is_enforced)

    def bound_to(self, principal: Principal) -> Governor:
        """Return what governs the runs of one principal; the owner's run in any tenant."""
        return self if principal.is_owner else PrincipalGovernor(self, principal)

    def close(self) -> None:
        """Write what is left, and give back what is held."""
        self.log.close()
        for judge in self._judges:
            judge.close()
        self._texts.close()
        self._file.close()

    def __enter__(self) -> Self:
        """Return the parts; they are closed in the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the parts."""
        self.close()

    def _make_governor(self, tenant: str) -> LocalGovernor:
        return LocalGovernor(
            self.policies,
            self.log,
            clock=self.clock,
            entropy=self.entropy,
            judge=self._make_judge(tenant),
            texts=self._texts,
            is_durable=self._is_durable,
            compiled=self._compiled,
        )

    def _make_judge(self, tenant: str) -> ModelJudge:
        judge = model_judge(partial(self._key, tenant), urls=self._judge_urls)
        self._judges.append(judge)
        return judge

    def _key(self, tenant: str, name: str) -> str | None:
        return self.secrets.secret(name, tenant) or (os.environ.get(name) if tenant == DEFAULT_TENANT else None)


def model_judge(key_for: Callable[[str], str | None] = os.environ.get, *, urls: Mapping[str, str] = _NOTHING) -> ModelJudge:
    """Return the judge that policies ask, by default with the keys of this process; whoever asks for it closes it."""
    from evidentia.backends.llm.judge import ModelJudge
    from evidentia.grounding.score import WordScorer

    return ModelJudge(key_for=key_for, urls=urls, scorers={LOCAL_SCORER: WordScorer()})


def open_control(directory: Path, *, is_durable: bool = False) -> GovernanceRuntime:
    """Open what governs the base in a directory, its runs included; whoever asks for it closes it."""
    return GovernanceRuntime(directory, is_durable=is_durable)


def remote_governor(url: str, *, token: str) -> RemoteGovernor:
    """Return the control plane at a URL as a governor; whoever asks for it closes it."""
    from evidentia.backends.remote.remote_governor import RemoteGovernor

    return RemoteGovernor(url, token=token)


@contextmanager
def open_tokens(directory: Path) -> Iterator[tuple[EmbeddedTokens, Clock]]:
    """Give the tokens of a base, and the clock by which they expire."""
    if not has_base(directory):
        raise BaseMissingError(str(directory))
    clock = SystemClock()
    file = GovernanceFile(directory / GOVERNANCE_NAME)
    try:
        yield EmbeddedTokens(file, clock=clock, entropy=SystemEntropy()), clock
    finally:
        file.close()


# --- authentication and quotas: the parts behind `[server]` in the settings ---


def open_usage(directory: Path, *, clock: Clock) -> EmbeddedUsage:
    """Return what counts requests by the day; whoever asks for it closes it."""
    return EmbeddedUsage(directory, clock=clock)


def signed_tokens(settings: JwtSettings, *, directory: Path, clock: Clock) -> JwtVerifier | None:
    """Return what verifies signed tokens; None when the settings name no keys.

    Raises:
        InvalidFieldError: The settings would let in the wrong people, or nobody.
    """
    if not settings.keys:
        return None
    try:
        from evidentia.backends.jwt.jwt_verifier import JwtVerifier
    except ImportError as error:
        raise MissingExtraError("server", needed_for="server.jwt") from error
    return JwtVerifier(settings, keys_file=directory / settings.keys, clock=clock)
