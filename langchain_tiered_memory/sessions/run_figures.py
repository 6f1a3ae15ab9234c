"""What is known of a run: its figures so far, by all processes that have a part in it, and the last report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.runs.files.so_far import Measured, RunSoFar, report_from_json
from langchain_tiered_memory.types.files import RunReport

if TYPE_CHECKING:
    from langchain_tiered_memory.events import EventName
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.session_engine import SessionEngine
    from langchain_tiered_memory.types.records import SessionRef


class RunFigures:
    """A run's session and its figures.

    Args:
        core: The session.
    """

    def __init__(self, core: SessionEngine) -> None:
        self.core = core
        """The session behind the verbs, for integrations: its names may change with any version."""
        self.session_id = core.session_id
        self._monitor = core.engine.monitors.of(core.session_id)
        self._started_at = core.runtime.now()
        self._is_begun = False
        self._not_loaded: tuple[str, ...] = ()

    def report(self) -> RunReport:
        """How the run goes: sizes, counts, times, contexts, alerts; what another process began is taken up."""
        runtime, ref = self._runtime, self._ref()
        runtime.store.kept_files.settle(ref)
        known = self._known_of_the_run(ref)
        return RunReport(
            session_id=self.session_id,
            started_at=known.started_at,
            at=runtime.now(),
            sizes=runtime.store.kept_files.sizes(ref, runtime.settings.tiers),
            counts=dict(runtime.store.kept_files.times(ref).figures or {}),
            timings=known.timings,
            alerts=known.alerts,
            contexts=self.core.engine.contexts.of(self.session_id),
            not_loaded=known.not_loaded,
        )

    areport = off_loop_twin(report)

    def last_report(self) -> RunReport | None:
        """The report of the session's last run that ended, whichever process ended it; `None` where none did.

        It has no contexts: these are told by the report that `end` returns.
        """
        return report_from_json(self._runtime.store.kept_files.last_report(self._ref()))

    alast_report = off_loop_twin(last_report)

    def _known_of_the_run(self, ref: SessionRef, *, is_new: bool = False) -> RunSoFar:
        """What this process measured, and what was saved by those that had a part in the run."""
        saved = None if is_new else RunSoFar.from_json(self._runtime.store.kept_files.under_way(ref))
        known = saved or RunSoFar(started_at=self._started_at)
        if self._is_begun:
            known = replace(known, started_at=self._started_at, not_loaded=self._not_loaded)
        measured = Measured(timings=self._monitor.timings(), alerts=self._monitor.alerts())
        return known.with_part(self._runtime.worker, measured)

    def _save_under_way(self, *, is_new: bool = False) -> None:
        """Keep what is known so far: whoever ends the run may be another process."""
        if self._runtime.store.database.read_only:
            return
        ref = self._ref()
        known = replace(self._known_of_the_run(ref, is_new=is_new), seen_at=self._runtime.now())
        self._runtime.store.kept_files.save_under_way(ref, known.as_json())

    @property
    def _runtime(self) -> Runtime:
        return self.core.checked

    def _ref(self) -> SessionRef:
        """The session, made where it is not there yet."""
        runtime = self._runtime
        ref = runtime.store.transcript.find(self.session_id)
        if ref is not None:
            return ref
        made = runtime.store.transcript.append(
            self.session_id, (), user=self.core.user, title=self.core.title, now=runtime.now()
        )
        return made.ref

    def _report(self, name: EventName, reason: str, **details: object) -> None:
        self.core.engine.report(name, reason, session_id=self.session_id, **details)
