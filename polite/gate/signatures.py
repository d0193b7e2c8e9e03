"""Signatures: a gate's signer with its clock."""

import re
from dataclasses import dataclass, replace
from functools import partial

from polite.errors import InvalidOption
from polite.origin import Target
from polite.ports import Ask, Clock, Signer

# RFC 9110, 5.6.2. A longer name is no method.
_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}").fullmatch


class SignerFailed(RuntimeError):
    """A user's signer failed. That says nothing of the server, whatever the signer raised: its vault may be out of reach."""


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signs requests at the moment when they are sent."""

    signer: Signer
    clock: Clock

    def of(self, method: str, target: Target) -> dict[str, str]:
        """Return the header fields that sign a request which is sent now.

        Raises InvalidOption for a method that is no token, and SignerFailed.
        """
        if _METHOD(method) is None:
            raise InvalidOption(f"sign: method must be one such as GET, got {method[:80]!r}", url=target.url)
        try:
            return dict(self.signer.sign(method, target, self.clock.wall()))
        except Exception as error:
            raise SignerFailed(f"the signer failed: {error!r}") from error

    def added(self, ask: Ask) -> Ask:
        """Return the request of a transport, which signs it when the connection is there."""
        return replace(ask, signed=partial(self.of, "GET", ask.target))
