"""The command `tiered-memory`, and the only place that turns errors into a line on the terminal."""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from langchain_tiered_memory._version import __version__
from langchain_tiered_memory.cli import ask, care, pages, replaying, transfer
from langchain_tiered_memory.cli.options import EXIT_ERROR, KeyFile, use_key_file
from langchain_tiered_memory.cli.screen import for_a_shell
from langchain_tiered_memory.display.sheet import harmless
from langchain_tiered_memory.errors import ReducedFunctionWarning, TieredMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""
_COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "replay": (replaying.replay, "--db memory.db"),
    "ask": (ask.ask, 'memory.db alice "What was the budget?"'),
    "inspect": (care.inspect, "memory.db alice"),
    "facts": (ask.facts, "memory.db alice shed"),
    "correct": (ask.correct, 'memory.db alice 3f9c "The shed costs 640 euros."'),
    "rate": (ask.rate, 'memory.db alice 1-40 incomplete --note "The shed is for the bikes."'),
    "page": (pages.page, "memory.db alice -o page.html"),
    "serve": (pages.serve, "memory.db"),
    "policy": (ask.policy, "--max-tokens 8000"),
    "verify": (care.verify, "memory.db"),
    "reindex": (care.reindex, "memory.db"),
    "doctor": (care.doctor, "memory.db"),
    "export": (transfer.export, "memory.db alice --out alice.jsonl"),
    "import": (transfer.import_, "memory.db conversations.json"),
    "forget": (transfer.forget, "memory.db alice --message m1"),
    "encrypt": (care.encrypt, "memory.db encrypted.db"),
    "rotate-key": (care.rotate_key, "encrypted.db new-key.txt"),
    "status": (care.status, "memory.db"),
    "setup": (care.setup, "--yes"),
}
"""The commands in the order of `--help`, each with example arguments."""
_WITH_KEY = ("encrypt", "rotate-key")
EXAMPLES = {
    name: f"tiered-memory {'--key-file key.txt ' if name in _WITH_KEY else ''}{name} {example}"
    for name, (_, example) in _COMMANDS.items()
}
_EXIT_CODES = (
    "Exit codes: 0 done; 1 problems remain, or you answered no; 2 the command failed; 130 stopped "
    "with Ctrl-C. You can shorten an id to any unique prefix."
)


class Command(TyperCommand):
    """A command whose help omits the Python types, such as `<list[str]>`, that newer versions of typer show."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's own click, which has no public name
        """All arguments and options, help included."""
        return _without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - as above
        """The usage after the command's name in the common form: `DB [SESSION]`."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class Group(TyperGroup):
    """The command with its commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as above
        """All arguments and options, help included."""
        return _without_types(super().get_params(ctx))


def _without_types(params: Iterable[Any]) -> list[Any]:
    shown = list(params)
    for one in shown:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif one.param_type_name == "argument":
            one.display_type_rich = _nothing  # its name says it
    return shown


def _nothing(ctx: Any) -> None:  # noqa: ANN401, ARG001 - as typer asks
    return None


app = typer.Typer(
    name="tiered-memory",
    cls=Group,
    help="Tiered conversation memory: add conversations, see what a model would be shown, measure and maintain it.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_command, _) in _COMMANDS.items():
    app.command(_name, cls=Command, epilog=f"Example: `{EXAMPLES[_name]}`")(_command)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        sys.stdout.write(f"tiered-memory {__version__}\n")
        raise typer.Exit


@app.callback()
def _common(
    *,
    key_file: KeyFile = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the package's log on standard error.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    use_key_file(key_file)
    warnings.simplefilter("ignore", ReducedFunctionWarning)  # commands say it in a line of their own
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s")
    logging.getLogger("langchain_tiered_memory").setLevel(logging.DEBUG if verbose else logging.ERROR)


def main() -> None:
    """Run the command line and exit: 0, 1 if there are problems, 2 if the command failed, 130 for Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code. An error of this package is one line, never a traceback."""
    try:
        code = app(arguments, standalone_mode=False, prog_name="tiered-memory")
    except TieredMemoryError as error:
        return _failed(str(error), EXIT_ERROR)
    except (typer.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = 0  # the reader, such as `head`, has seen enough
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _failed(f"{error.strerror or error}{where}", EXIT_ERROR)
    except Exception as error:
        explain = getattr(error, "format_message", None)  # a mistake in the arguments
        if not callable(explain):
            raise
        code = _mistaken(error, str(explain()))
    if code == EXIT_INTERRUPTED:
        return _failed("stopped; everything stored before is safe", EXIT_INTERRUPTED)
    return code if isinstance(code, int) else 0


def _mistaken(error: Any, message: str) -> int:  # noqa: ANN401 - of typer's own click, which has no public name
    """One line that says what is wrong with the arguments, and where to find help. Without any, the help itself."""
    where = getattr(getattr(error, "ctx", None), "command_path", "tiered-memory")
    if "\n" in message.strip():
        sys.stderr.write(f"{message}\n")
        return EXIT_ERROR
    told = message.strip().rstrip(".").replace("Value error, ", "").replace("Input should be", "it must be")
    joined = " See" if told.endswith("?") else "; see"
    return _failed(f"{told[:1].lower()}{told[1:]}{joined} `{where} --help`", EXIT_ERROR)


def _failed(message: str, code: int) -> int:
    line = f"tiered-memory: {for_a_shell(harmless(' '.join(message.split())))}"
    if sys.stderr.isatty():
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(f"{line}\n")
    return code
