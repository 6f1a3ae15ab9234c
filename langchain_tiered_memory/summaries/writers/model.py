"""The condenser that asks a chat model; the answer is checked, repaired once, and cut to size.

A job larger than the model's window is condensed in parts, and the parts are merged; nothing is dropped unseen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.settings import ValidationSettings
from langchain_tiered_memory.summaries.prompts.batch_prompt import build_batch
from langchain_tiered_memory.summaries.writers.batches import CUT_OFF, checked, cut_to, nothing, taken_apart, text_alone
from langchain_tiered_memory.summaries.writers.behind import BehindRequests
from langchain_tiered_memory.summaries.writers.fitting import merge_job, split_job
from langchain_tiered_memory.summaries.writers.jobs import (
    Condensed,
    CondenseJob,
    Part,
    UnsoundSummaryError,
    with_spent,
    without_text,
)
from langchain_tiered_memory.summaries.writers.model_calls import ModelCalls, PromptOverflowError
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.summaries.engine.extension_host import Report
    from langchain_tiered_memory.summaries.writers.behind import Standing
    from langchain_tiered_memory.summaries.writers.fitting import Shortening

_FILLED = (
    0.9  # of the window that a prompt may fill, and of an answer's limit: our counts are near the provider's, not equal
)
_MIN_ROOM_TOKENS = 64
_MAX_DEPTH = 4


class ModelCondenser:
    """Implements `jobs.Condenser` with a LangChain chat model.

    Args:
        calls: The condensing model, and how it is called.
        validation: The least scores of an answer that is not asked for again.
        shortening: What the model is shown of long output of tools; all of it where it is not given.
    """

    def __init__(
        self, calls: ModelCalls, *, validation: ValidationSettings | None = None, shortening: Shortening | None = None
    ) -> None:
        self._validation = validation if validation is not None else ValidationSettings()
        self._calls = calls
        self._name = calls.name
        self._count_text = calls.count_text
        self._behind = BehindRequests(calls, validation=self._validation)
        self._shortening = shortening

    @property
    def name(self) -> str:
        """Who signs the summaries."""
        return self._name

    def condense(self, job: CondenseJob) -> Flow[Condensed]:
        """The summary of `job`, checked and within its size.

        Raises:
            CondensationError: when the model failed, or answered twice with something that is no summary.
        """
        job = self._shown([Part(job=job)])[0].job
        cap = max(1, min(job.max_tokens, job.source_tokens, self.answer_room() or job.max_tokens))
        job = replace(job, max_tokens=cap, target_tokens=max(1, min(job.target_tokens, cap)))
        return (yield from self._summary(job, depth=0))

    def room(self) -> int:
        """Tokens that one call may read and write."""
        return int(self._calls.window() * _FILLED)

    def answer_room(self) -> int | None:
        """Tokens that one answer may have, a little less than the model's limit; `None` where nobody says."""
        limit = self._calls.answer_limit()
        return max(int(limit * _FILLED), 1) if limit is not None else None

    def asks(self, model: object, *, by_name: bool = False) -> bool:
        """Whether it calls this very model, or one that this wraps; by its name is enough where `by_name`."""
        return self._calls.is_of(model, by_name=by_name)

    def condense_together(
        self, parts: Sequence[Part], *, standing: Standing | None = None, report: Report | None = None
    ) -> Flow[list[Condensed]]:
        """What one call gives for each of `parts`, checked; none of what an overflow came for.

        One part alone has no usual call for several: nothing is given where it is not written behind the request. The
        last request of the session's agent is sent again with a message behind it where that is billed less; where it
        brings nothing, the usual call is made, and `report` told.
        """
        shown = self._shown(parts)
        whole = [
            replace(one, job=replace(one.job, target_tokens=min(one.job.target_tokens, two.job.target_tokens)))
            for one, two in zip(parts, shown, strict=True)
        ]
        tried, why = list[Condensed](), ""
        if standing is not None:
            tried, why = yield from self._behind.written(whole, standing, usual=shown)
        if tried and not why:
            return tried
        if tried and report is not None:
            said = f"{self._name}, behind the agent's last request: {why}"
            report(EventName.CONDENSED_APART, said, session_id=parts[0].job.session_id, writer=self._name)
        lost = sum((one.spent for one in tried), Spent())
        if len(parts) == 1:
            return nothing(parts, self._name, lost, why) if tried else []
        before = [one.refused for one in tried] or [() for _ in parts]
        shown = [
            replace(part, job=replace(part.job, refused=one[-1].why)) if one else part
            for part, one in zip(shown, before, strict=True)
        ]
        try:
            answer = yield from self._calls.ask(build_batch(shown), shown[0].job)
            answers = taken_apart(
                answer, shown, writer=self._name, count_text=self._count_text, validation=self._validation
            )
        except PromptOverflowError as error:
            answers = nothing(parts, self._name, error.spent, str(error))
        except CondensationError as error:
            raise with_spent(error, lost + error.spent, refused=error.refused) from error
        answers = [replace(one, refused=(*two, *one.refused)) for one, two in zip(answers, before, strict=True)]
        return [replace(answers[0], spent=answers[0].spent + lost), *answers[1:]]

    def _shown(self, parts: Sequence[Part]) -> list[Part]:
        return self._shortening.of(parts) if self._shortening is not None else list(parts)

    def _summary(self, job: CondenseJob, *, depth: int) -> Flow[Condensed]:
        """One call where the job fits into the window, else its parts and their merging."""
        lost = Spent()
        part = Part(job=job)
        for _ in range(_MAX_DEPTH):
            prompt = build_batch([part])
            try:
                if self._calls.count(prompt) + job.max_tokens > self._calls.window() * _FILLED:
                    answer = yield from self._by_parts(job, depth)
                else:
                    answer = yield from self._one(part, prompt)
            except PromptOverflowError as error:
                lost += error.spent  # the window is smaller now: look again
            else:
                return replace(answer, spent=answer.spent + lost)
        message = f"{self._name} reports an overflow however small the prompt; check its profile's max_input_tokens"
        raise CondensationError(message)

    def _by_parts(self, job: CondenseJob, depth: int) -> Flow[Condensed]:
        """Condense the parts with the same prompt, then merge what came back."""
        window = self._calls.window()
        empty = self._calls.count(build_batch([Part(job=replace(job, sources=()))]))
        room = int(window * _FILLED) - empty - job.max_tokens
        if room < _MIN_ROOM_TOKENS or depth >= _MAX_DEPTH:
            message = (
                f"{self._name} has a window of {window} tokens, too small for a summary of {job.source_tokens} tokens;"
                " set its profile's max_input_tokens, raise default_window, or condense with another model"
            )
            raise CondensationError(message)
        spent = Spent()
        refused = list[Refused]()
        cut_lines = 0
        job = replace(job, refused="")  # that was said of the whole
        finished: list[tuple[CondenseJob, str, int]] = []
        for part in split_job(job, room_tokens=room, count_text=self._count_text):
            try:
                answer = yield from self._summary(part, depth=depth + 1)
            except CondensationError as error:
                raise with_spent(error, spent + error.spent, refused=error.refused) from error
            spent += answer.spent
            refused += answer.refused
            cut_lines += answer.cut_lines
            finished.append((part, answer.text, answer.tokens))
        if len(finished) == 1:
            alone = Condensed(text=answer.text, tokens=answer.tokens, model=self._name)
            merged = cut_to(alone, job.max_tokens, count_text=self._count_text)
        else:
            merged = yield from self._summary(merge_job(job, finished), depth=depth + 1)
        return replace(
            merged,
            spent=merged.spent + spent,
            cut_lines=merged.cut_lines + cut_lines,
            refused=(*refused, *merged.refused),
        )

    def _one(self, part: Part, prompt: list[BaseMessage]) -> Flow[Condensed]:
        """One call, and a second one that says why where the answer cannot be used.

        After that, a fault that can be lived with is: what is too long is cut, half of the sections are better than
        none.
        """
        first, is_whole = yield from self._asked(prompt, part)
        taken = self._checked(first, part) if is_whole else without_text(first, *CUT_OFF, FailureReason.EMPTY_SUMMARY)
        if taken.text:
            return taken
        again = replace(part, job=replace(part.job, refused=taken.refused[-1].why))
        passed = self._checked(first, part, is_last=True)
        try:
            second, _ = yield from self._asked(build_batch([again]), part)
        except (CondensationError, PromptOverflowError) as error:
            if passed.text:
                return replace(passed, spent=first.spent + error.spent)
            raise self._unusable(taken.refused[0], error, first) from error
        written, spent = self._checked(second, part, is_last=True), first.spent + second.spent
        if written.text:
            return replace(written, spent=spent, refused=taken.refused)
        if passed.text:
            return replace(passed, spent=spent, refused=written.refused)
        refused = (*taken.refused, *written.refused)
        message = f"{self._name} gave no usable summary, twice: {refused[0].why}; then {refused[1].why}"
        if written.reason is FailureReason.UNSOUND:
            raise UnsoundSummaryError(message, written=replace(second, spent=spent, refused=refused))
        raise CondensationError(
            message, spent=spent, reason=written.reason or FailureReason.EMPTY_SUMMARY, refused=refused
        )

    def _asked(self, prompt: list[BaseMessage], part: Part) -> Flow[tuple[Condensed, bool]]:
        """One answer to a prompt for one summary, and whether that is whole."""
        answer = yield from self._calls.ask(prompt, part.job)
        text, is_whole = text_alone(answer)
        tokens = answer.tokens if text == answer.text else self._count_text(text)
        return Condensed(text=text, tokens=tokens, model=self._name, spent=answer.spent), is_whole

    def _checked(self, answer: Condensed, part: Part, *, is_last: bool = False) -> Condensed:
        return checked(answer, part, count_text=self._count_text, validation=self._validation, is_last=is_last)

    def _unusable(
        self, refused: Refused, error: CondensationError | PromptOverflowError, first: Condensed
    ) -> CondensationError:
        """The first answer was unusable, and the second never came."""
        if isinstance(error, CondensationError) and error.retry_after_seconds is not None:
            return with_spent(error, first.spent + error.spent, refused=error.refused)
        message = f"{self._name} gave no usable summary: {refused.why}; asked again, it failed: {error}"
        reason = error.reason if isinstance(error, CondensationError) else FailureReason.MODEL_ERROR
        return CondensationError(message, spent=first.spent + error.spent, reason=reason, refused=(refused,))
