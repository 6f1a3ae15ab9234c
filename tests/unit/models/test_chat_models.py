"""The chat model inside of what LangChain wraps around one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from langchain_tiered_memory.models.chat_models import models_in, profile_of
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable


class Plan(BaseModel):
    """A plan."""

    day: str


def chat_model(name: str = "mid", window: int | None = 3000, answer: int | None = 300) -> ChatOpenAI:
    profile = {"max_input_tokens": window, "max_output_tokens": answer}
    return ChatOpenAI(
        model=name, api_key="none", profile={key: value for key, value in profile.items() if value is not None}
    )


def of_openai(**told: Any) -> ModelProfile:
    return ModelProfile(provider="openai", **told)


class Elsewhere(ChatOpenAI):
    """A model of a provider of its own."""

    @property
    def _llm_type(self) -> str:
        return "elsewhere-chat"


WRAPPERS: dict[str, Callable[[ChatOpenAI], Any]] = {
    "bare": lambda model: model,
    "bind": lambda model: model.bind(temperature=0),
    "bind_tools": lambda model: model.bind_tools([Plan]),
    "with_config": lambda model: model.with_config(tags=["a"]),
    "with_retry": lambda model: model.with_retry(),
    "with_listeners": lambda model: model.with_listeners(),
    "with_types": lambda model: model.with_types(input_type=str),
    "with_fallbacks": lambda model: model.with_fallbacks([chat_model("other", 9000)]),
    "with_structured_output": lambda model: model.with_structured_output(Plan),
    "with_structured_output, raw": lambda model: model.with_structured_output(Plan, include_raw=True),
    "behind a prompt": lambda model: ChatPromptTemplate.from_messages([("placeholder", "{messages}")]) | model,
    "map": lambda model: model.map(),
    "configurable_fields": lambda model: model.configurable_fields(temperature=ConfigurableField(id="temperature")),
    "configurable_alternatives": lambda model: model.configurable_alternatives(
        ConfigurableField(id="which"), small=chat_model("small", 1000)
    ),
    "many": lambda model: model.bind_tools([Plan]).with_retry().with_fallbacks([model]).with_config(tags=["b"]),
}


@pytest.mark.parametrize("wrapper", list(WRAPPERS))
def test_a_wrapper_tells_the_window_the_name_and_the_answer_of_what_it_wraps(wrapper: str) -> None:
    assert profile_of(WRAPPERS[wrapper](chat_model())) == of_openai(name="mid", window=3000, answer=300)


def test_of_fallbacks_the_smallest_window_counts() -> None:
    fallbacks = chat_model("large", 9000, 900).with_fallbacks([chat_model("silent", None), chat_model("small", 1000)])
    assert profile_of(fallbacks.with_retry()) == of_openai(name="large", window=1000, answer=300)


def test_fallbacks_that_tell_nothing_tell_a_name() -> None:
    assert profile_of(chat_model("a", None, None).with_fallbacks([chat_model("b", None, None)])) == of_openai(name="a")


def test_what_a_config_chooses_counts_within_its_run() -> None:
    model = WRAPPERS["configurable_alternatives"](chat_model())
    with set_config_context({"configurable": {"which": "small"}}) as context:
        assert context.run(profile_of, model) == of_openai(name="small", window=1000, answer=300)


def test_a_model_that_init_chat_model_makes_of_a_config_is_known_by_the_running_config() -> None:
    made = {"api_key": "none", "profile": {"max_input_tokens": 3000}}
    model = init_chat_model("one", model_provider="openai", configurable_fields=("model",), **made)
    wrapped = model.bind_tools([Plan]).with_config(tags=["c"])
    assert type(wrapped).__name__ == "_ConfigurableModel"  # the name by which it is known
    assert profile_of(wrapped) == of_openai(name="one", window=3000)
    with set_config_context({"configurable": {"model": "two"}}) as context:
        assert context.run(profile_of, wrapped) == of_openai(name="two", window=3000)


def test_a_model_that_no_config_has_named_yet_tells_nothing() -> None:
    assert profile_of(init_chat_model(configurable_fields=("model", "model_provider"))) == ModelProfile()


def test_a_choice_that_cannot_be_made_is_left_to_the_call() -> None:
    model = WRAPPERS["configurable_alternatives"](chat_model())
    with set_config_context({"configurable": {"which": "nobody"}}) as context:
        assert context.run(profile_of, model) == ModelProfile()


def test_another_model_that_is_bound_to_the_call_is_not_taken_for_the_one_that_it_is_bound_to() -> None:
    assert profile_of(chat_model().bind(model="other").with_retry()) == ModelProfile(name="other")
    assert profile_of(chat_model().bind(model="mid")) == of_openai(name="mid", window=3000, answer=300)


def test_fallbacks_of_two_providers_are_of_neither() -> None:
    other = Elsewhere(model="mid", api_key="none")
    assert profile_of(other).provider == "elsewhere-chat"
    assert profile_of(other.with_fallbacks([other])).provider == "elsewhere-chat"
    assert profile_of(chat_model().with_fallbacks([other])).provider == "elsewhere-chat or openai"


def test_what_holds_no_chat_model_tells_nothing() -> None:
    assert profile_of(RunnableLambda(str)) == ModelProfile()


def test_wrappers_that_hold_themselves_end() -> None:
    model = chat_model()
    round_about = model.with_fallbacks([model])
    round_about.fallbacks = [round_about.with_retry(), model]
    assert models_in(round_about) == (model, model)
    bound = model.bind(stop=["."])
    object.__setattr__(bound, "bound", bound)
    assert profile_of(bound) == ModelProfile()


def test_a_scripted_model_keeps_the_name_of_its_class() -> None:
    assert profile_of(ScriptedModel(answers=["ok"])).name == "ScriptedModel"
