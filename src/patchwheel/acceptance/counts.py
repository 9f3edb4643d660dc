"""What speculation is counted by, and what the counts amount to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Drafts, and how many of them were accepted at each position.

    Attributes:
        drafts: How often the drafter was asked. Each time it proposes one token for each position.
        accepted: Entry i counts the drafts whose token i (from 0) was accepted; acceptance ends at the first token
            that the target would not have chosen, so that the entries never grow.
    """

    drafts: int
    accepted: tuple[int, ...]

    def since(self, earlier: Counts) -> Counts:
        """What has been added since counters stood at ``earlier``.

        Raises:
            ValueError: The counters have other positions, or went back.
        """
        before = earlier.accepted or (0,) * len(self.accepted)
        accepted = tuple(now - then for now, then in zip(self.accepted, before, strict=True))
        drafts = self.drafts - earlier.drafts
        if drafts < 0 or any(count < 0 for count in accepted):
            raise ValueError("the counters went back: the server was started anew in between")
        return Counts(drafts=drafts, accepted=accepted)

    @property
    def mean_length(self) -> float:
        """Tokens gained by a step on average, the target's own included: 1 + accepted / drafts, at most K + 1."""
        return 1 + sum(self.accepted) / self.drafts if self.drafts else 1.0

    @property
    def rate(self) -> float:
        """Share of the proposed tokens that was accepted, 0 to 1. Not comparable between different K."""
        proposed = self.drafts * len(self.accepted)
        return sum(self.accepted) / proposed if proposed else 0.0

    def as_document(self) -> dict[str, object]:
        """The counts as part of a JSON document, with what they amount to."""
        return {
            "drafts": self.drafts,
            "accepted": list(self.accepted),
            "mean_length": round(self.mean_length, 4),
            "rate": round(self.rate, 4),
        }

    def __str__(self) -> str:
        return f"{self.drafts} drafts, accepted {' '.join(map(str, self.accepted))}"
