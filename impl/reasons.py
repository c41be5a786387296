"""The reasons why a checkpoint is aborted, or not begun: a registry that the documentation is printed from."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Reason(StrEnum):
    """The reason why a checkpoint is aborted, or not begun."""

    EXPIRED = "expired"
    SUBSUMED = "subsumed"
    CANCELLED = "cancelled"
    BUFFER_LIMIT = "buffer limit"
    IN_FLIGHT_LIMIT = "in-flight limit"
    BARRIER_MISMATCH = "barrier mismatch"
    SNAPSHOT_FAILED = "snapshot failed"
    OUTPUT_CLOSED = "output closed"
    REPLACED = "replaced"
    DECLINED = "declined"
    MIN_PAUSE = "min pause"
    TOO_MANY_PENDING = "too many pending"
    TOO_MANY_FAILURES = "too many failures"
    SOURCES_FINISHED = "sources finished"
    IDS_USED_UP = "ids used up"
    STORE_FAILED = "store failed"
    STORE_IN_DOUBT = "store in doubt"
    JOB_FAILED = "job failed"

    @property
    def description(self) -> str:
        """The reason in a sentence."""
        return REASONS[self].description

    @property
    def definite(self) -> bool:
        """Return whether the checkpoint has surely not completed."""
        return REASONS[self].definite

    @property
    def counts(self) -> bool:
        """Return whether it counts as a failure in a row: `ReasonInfo`."""
        return REASONS[self].counts


class ReasonInfo(NamedTuple):
    """The explanation of a reason.

    Attributes
    ----------
    description : str
    definite : bool
        Whether the checkpoint has surely not completed.
    counts : bool
        Whether it counts against `CoordinatorConfig.tolerable_failures`: something was wrong with storing, or with a
        task's part, or it took too long. Who was overtaken, cancelled, ended or not begun has not failed.
        Source: Apache Flink, `CheckpointFailureManager.checkFailureCounter`, and FLINK-27570 for manifests. A limit on
        what is held while inputs wait does not count there, either (`CHECKPOINT_DECLINED_ALIGNMENT_LIMIT_EXCEEDED`).
    """

    description: str
    definite: bool
    counts: bool


REASONS: dict[Reason, ReasonInfo] = {
    Reason.EXPIRED: ReasonInfo("Its timeout, counted from the trigger, passed before it was whole.", True, counts=True),
    Reason.SUBSUMED: ReasonInfo(
        "A newer checkpoint began here, or completed, before it was whole.", True, counts=False
    ),
    Reason.CANCELLED: ReasonInfo("A cancel marker came in the barrier's place.", True, counts=False),
    Reason.BUFFER_LIMIT: ReasonInfo(
        "One message more behind the barriers would have passed the limit in bytes.", True, counts=False
    ),
    Reason.IN_FLIGHT_LIMIT: ReasonInfo(
        "What was in flight would have passed the limit of what is recorded.", True, counts=True
    ),
    Reason.BARRIER_MISMATCH: ReasonInfo("Two barriers of one id disagree in epoch or flags.", True, counts=True),
    Reason.SNAPSHOT_FAILED: ReasonInfo("The image of the state could not be taken.", True, counts=True),
    Reason.OUTPUT_CLOSED: ReasonInfo(
        "An output was closed, so the barrier could not reach every channel.", True, counts=False
    ),
    Reason.REPLACED: ReasonInfo("A newer command took its place before a source had seen it.", True, counts=False),
    Reason.DECLINED: ReasonInfo("A task declined its part.", True, counts=True),
    Reason.MIN_PAUSE: ReasonInfo(
        "It was asked for too soon after the last one completed; it was not begun.", True, counts=False
    ),
    Reason.TOO_MANY_PENDING: ReasonInfo("As many as allowed are under way; it was not begun.", True, counts=False),
    Reason.TOO_MANY_FAILURES: ReasonInfo("More failed in a row than tolerated; no more are begun.", True, counts=False),
    Reason.SOURCES_FINISHED: ReasonInfo(
        "Every source has ended, so nothing can carry a barrier; it was not begun.", True, counts=False
    ),
    Reason.IDS_USED_UP: ReasonInfo("Every id that fits an epoch's 48 bits has been given.", True, counts=False),
    Reason.STORE_FAILED: ReasonInfo("The store refused its manifest.", True, counts=True),
    Reason.STORE_IN_DOUBT: ReasonInfo("The store did not say whether its manifest is there.", False, counts=True),
    Reason.JOB_FAILED: ReasonInfo(
        "The job failed before it was whole; until it is restored, none is begun.", True, counts=False
    ),
}
