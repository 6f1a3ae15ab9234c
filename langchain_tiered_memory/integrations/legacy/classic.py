"""The memory for `langchain_classic` chains: `ConversationChain`, `LLMChain` and whatever takes a `BaseMemory`.

A chain asks for variables before its model runs, and passes input and answer only afterwards and only if it succeeds.
So the user's words are written when the chain asks, and a chain that fails or is cancelled does not lose them.
Chains call their memory outside of their own run, so the memory has its own callbacks, tags and metadata for traces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_classic.base_memory import BaseMemory
from langchain_classic.memory import ReadOnlySharedMemory
from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager  # noqa: TC002 - pydantic reads it
from langchain_core.messages import BaseMessage, get_buffer_string
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.driver import Flow, arun, off_loop_twin, run
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.checks import Memory, check_known_view, set_up
from langchain_tiered_memory.integrations.legacy.turns import (
    answered,
    asked_in,
    can_be_said,
    chosen_key,
    identity,
    said_or_told,
    their_own,
    usual_keys,
    with_ids,
)
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.types.arguments import Count, ModelOrName, Name, SessionId  # noqa: TC001 - pydantic reads them
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.types.contexts import Context


_MOST_OPEN = 100
"""How many open turns are kept, because failed runs never close theirs."""
_NOT_SAID = ("stop",)


@dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """One run of a chain, from the load of its variables to the save of its answer."""

    key: tuple[str, ...]
    """The user's words. Several parallel runs may have the same."""
    spoken: list[BaseMessage]
    settled: frozenset[str] = frozenset()
    """Ids that were made here: no client has them, so parallel runs that share the turn write its words once."""
    is_written: bool = False
    """Whether `spoken` is in the session, under the ids that it has here."""
    variables: dict[str, Any] | None = None
    """The variables as returned. They stay the same until the turn is saved."""


class OpenTurns:
    """The runs between load and save. Chains run in threads, and report neither which run it is nor that it failed."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._turns: list[Turn] = []
        self._newest: Turn | None = None

    def opened(self, key: tuple[str, ...], spoken: Sequence[BaseMessage]) -> Turn:
        """A turn. If the last opened one has the same words, it is that one: the chain asks again or is retried."""
        with self._lock:
            if self._newest is None or self._newest.key != key:
                named = with_ids(spoken)
                settled = frozenset(str(one.id) for one, given in zip(named, spoken, strict=True) if not given.id)
                self._newest = Turn(key=key, spoken=named, settled=settled)
                self._turns = [*self._turns, self._newest][-_MOST_OPEN:]
            return self._newest

    def closed(self, key: tuple[str, ...]) -> Turn | None:
        """Close the latest turn with these words and return it."""
        with self._lock:
            found = next((one for one in reversed(self._turns) if one.key == key), None)
            if found is not None:
                self._turns.remove(found)
            if found is self._newest:
                self._newest = None
            return found


class ConversationTieredMemory(BaseMemory):
    """A tiered memory for one conversation of a classic chain.

        memory = ConversationTieredMemory(memory=TieredMemory.open("memory.db"), session_id="alice")
        chain = ConversationChain(llm=model, memory=memory)

    A sub-chain that only reads needs `memory.read_only()`, not a bare `ReadOnlySharedMemory(memory=memory)`, which
    would store the sub-chain's input as the user's words when the variables are loaded. A
    `ConversationalRetrievalChain` needs `memory_key="chat_history"` and `return_messages=True`. Copies, even deep ones,
    share the memory that they write to.
    """

    memory: Memory = Field(exclude=True)
    """The memory."""
    session_id: SessionId
    """The session."""
    user: Name | None = None
    """The user of the session. Another user's session is refused."""
    track: Name = DEFAULT_TRACK
    """The track of the session."""

    memory_key: Name = "history"
    """The prompt variable for the conversation so far."""
    input_key: Name | None = None
    """The input's key of the user's words. By default, the only possible one."""
    output_key: Name | None = None
    """The output's key of the answer. By default, the only possible one."""
    return_messages: bool = False
    """Whether `memory_key` is a list of messages, for the placeholder of a chat prompt. Otherwise it is a text."""
    human_prefix: str = "Human"
    """Prefix of the user's words in a text."""
    ai_prefix: str = "AI"
    """Prefix of the model's words in a text."""

    max_tokens: Count | None = None
    """The most tokens of conversation, input and `system` together. By default `settings.context.max_tokens`."""
    view: str = "default"
    """As `Session.context` takes it."""
    system: str | None = None
    """The fixed text of the prompt, for its size. The variables do not repeat it."""
    model: ModelOrName = Field(default=None, exclude=True)
    """The model of the chain, or its name. Its window and calibration are used."""
    save_input_first: bool = True
    """Store the input when the variables are loaded, so that a failing chain does not lose it."""

    callbacks: list[BaseCallbackHandler] | BaseCallbackManager | None = Field(default=None, exclude=True)
    """Callbacks for loads, saves and the summaries that they cause."""
    tags: list[str] | None = None
    """Tags of these runs."""
    metadata: dict[str, Any] | None = None
    """Metadata of these runs."""

    _turns: OpenTurns = PrivateAttr(default_factory=OpenTurns)

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    if not TYPE_CHECKING:  # type checkers know the fields

        def __init__(self, **choices: object) -> None:
            """Check the values, with our own error texts."""
            set_up(self, choices, super().__init__)
            check_known_view("ConversationTieredMemory", self.memory, self.view)

    @model_validator(mode="after")
    def _keys_apart(self) -> Self:
        if self.input_key == self.memory_key:
            msg = f"memory_key and input_key must differ: both are {self.input_key!r}"
            raise ValueError(msg)
        self.memory.session(self.session_id, user=self.user, track=self.track)
        return self

    @property
    def memory_variables(self) -> list[str]:
        """The prompt variable that it fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the variables for a prompt. The input is written first, and is not part of them.

        Raises:
            InvalidInputError: if it is not clear which input the user said.
            BudgetError: if `max_tokens` cannot hold what must be shown.
            StorageError: if the database cannot store the input.
        """
        loaded: dict[str, Any] = self._traced("load_tiered_memory", self._load, self._aload).invoke(inputs)
        return loaded

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """See `load_memory_variables`."""
        loaded: dict[str, Any] = await self._traced("load_tiered_memory", self._load, self._aload).ainvoke(inputs)
        return loaded

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Write the answer, and the input if loading did not write it. Summaries come later.

        Raises:
            InvalidInputError: if it is not clear which output is the answer. The input is still written.
            StorageError: if the database cannot store them.
        """
        self._traced("save_tiered_memory", self._save, self._asave).invoke({"inputs": inputs, "outputs": outputs})

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """See `save_context`."""
        await self._traced("save_tiered_memory", self._save, self._asave).ainvoke(
            {"inputs": inputs, "outputs": outputs}
        )

    def read_only(self) -> ReadOnlySharedMemory:
        """Return the same conversation for a sub-chain or a tool, whose inputs and answers are not stored."""
        return ReadOnlySharedMemory(memory=self.model_copy(update={"save_input_first": False}))

    def clear(self) -> None:
        """Remove the conversation for good, with everything derived from it."""
        self._turns = OpenTurns()
        self._session.forget()

    aclear = off_loop_twin(clear)  # type: ignore[arg-type] # the base class has its own `self`

    def __copy__(self) -> Self:
        """A separate handle: a turn that is open here is not open in the copy, whose session may differ."""
        copied = super().__copy__()
        copied._turns = OpenTurns()  # noqa: SLF001 - of the same class
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """As `copy`, because there is one memory and one database."""
        return self.__copy__()

    @property
    def _session(self) -> Session:
        return self.memory.session(self.session_id, user=self.user, track=self.track)

    def _traced(self, name: str, step: Callable[..., Any], astep: Callable[..., Any]) -> Runnable[dict[str, Any], Any]:
        told = {"callbacks": self.callbacks, "tags": self.tags or None, "metadata": self.metadata or None}
        given = {key: one for key, one in told.items() if one is not None}
        return RunnableLambda(step, astep).with_config(RunnableConfig(run_name=name), **given)

    def _loading(self, inputs: dict[str, Any]) -> Flow[dict[str, Any]]:
        turn, core = self._turn_of(inputs), self._session.core
        if turn.variables is None:
            if self.save_input_first and turn.spoken:
                turn.spoken, turn.is_written = core.add_turn(turn.spoken, settled=turn.settled), True
            # What was written asks for itself: it is the last user message in the session.
            query = None if turn.is_written else asked_in(turn.spoken)
            context = yield from core.context(
                query, max_tokens=self.max_tokens, view=self.view, system=self.system, model=self.model
            )
            turn.variables = self._variables(context, turn)
        return dict(turn.variables)

    def _load(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return run(self._loading(inputs))

    async def _aload(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return await arun(self._loading(inputs))

    def _save(self, both: dict[str, Any]) -> None:
        """Close a turn and write all of it. A new turn is new messages, whatever id a cached answer has."""
        inputs, outputs = both["inputs"], both["outputs"]
        spoken = self._spoken(inputs)
        turn = self._turns.closed(identity(spoken))
        said = turn.spoken if turn is not None else with_ids(spoken)
        settled = turn.settled if turn is not None else frozenset[str]()
        if turn is not None and turn.is_written:
            settled |= {str(one.id) for one in said}
        try:
            key = chosen_key("output", self.output_key, outputs) if outputs else None
            answer = with_ids(their_own(answered(outputs[key]))) if key is not None else []
        except InvalidInputError:
            self._session.core.add_turn(said, settled=settled)
            raise
        self._session.core.add_turn([*said, *answer], settled=settled)

    _asave = off_loop_twin(_save)

    def _turn_of(self, inputs: Mapping[str, Any]) -> Turn:
        """The turn that these inputs open, or the open one if the chain asks again or is retried."""
        spoken = self._spoken(inputs)
        return self._turns.opened(identity(spoken), spoken) if spoken else Turn(key=(), spoken=[])

    def _spoken(self, inputs: Mapping[str, Any]) -> list[BaseMessage]:
        given = {key: value for key, value in inputs.items() if key not in (self.memory_key, *_NOT_SAID)}
        if self.input_key is None:
            given = {key: value for key, value in given.items() if value is not None}
            if not (usual_keys("input", given) or any(can_be_said(value) for value in given.values())):
                return []  # a prompt of the conversation alone, or a look at the memory
        value = given[chosen_key("input", self.input_key, given)]
        return [] if value is None else their_own(said_or_told(value))

    def _variables(self, context: Context, turn: Turn) -> dict[str, Any]:
        """The content of a context, without the input, which the prompt already has."""
        ids = {one.id for one in turn.spoken}
        shown = [one for one in context.messages[1 if self.system else 0 :] if one.id is None or one.id not in ids]
        return {self.memory_key: shown if self.return_messages else "\n".join(map(self._line, shown))}

    def _line(self, message: BaseMessage) -> str:
        if MARK in message.additional_kwargs:
            return str(message.text)
        return get_buffer_string([message], human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
