"""The command `tiered-memory`, and the one place where errors become a line on the terminal."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from langchain_tiered_memory._version import __version__
from langchain_tiered_memory.cli import ask, care, evaluate, policy, transfer
from langchain_tiered_memory.cli.options import EXIT_ERROR
from langchain_tiered_memory.errors import ReducedFunctionWarning, TieredMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
_COMMANDS: dict[str, Callable[..., None]] = {
    "replay": evaluate.replay,
    "ask": ask.ask,
    "eval": evaluate.evaluate,
    "inspect": care.inspect,
    "facts": ask.facts,
    "policy": policy.policy,
    "verify": care.verify,
    "reindex": care.reindex,
    "doctor": care.doctor,
    "export": transfer.export,
    "import": transfer.import_,
    "forget": transfer.forget,
    "status": care.status,
    "setup": care.setup,
}
"""In the order of `--help`."""


class Command(TyperCommand):
    """A command whose switches are shown by name alone: newer versions of typer write `<bool>` behind them."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's own click, which has no public name
        """All arguments and options, help included."""
        return _without_switch_types(super().get_params(ctx))


class Group(TyperGroup):
    """The command with its commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as above
        """All arguments and options, help included."""
        return _without_switch_types(super().get_params(ctx))


def _without_switch_types(params: Iterable[Any]) -> list[Any]:
    shown = list(params)
    for one in shown:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return shown


app = typer.Typer(
    name="tiered-memory",
    cls=Group,
    help="Tiered conversation memory: feed it conversations, ask what a model would see, measure it, look after it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in _COMMANDS.items():
    app.command(_name, cls=Command)(_command)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        sys.stdout.write(f"tiered-memory {__version__}\n")
        raise typer.Exit


@app.callback()
def _common(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the package's log on standard error.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    warnings.simplefilter("ignore", ReducedFunctionWarning)  # commands say it in a line of their own
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s")
    logging.getLogger("langchain_tiered_memory").setLevel(logging.DEBUG if verbose else logging.ERROR)


def main() -> None:
    """Run the command line and leave: 0, 1 for problems found, 2 for what cannot be done, 130 for Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code. An error of this package is one line, never a traceback."""
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
        show = getattr(error, "show", None)  # a mistake in the arguments, which click explains itself
        if not callable(show):
            raise
        show(file=sys.stderr)
        code = EXIT_ERROR
    if code == EXIT_INTERRUPTED:
        return _failed("stopped; what was stored before is safe", EXIT_INTERRUPTED)
    return code if isinstance(code, int) else 0


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"tiered-memory: {' '.join(message.split())}\n")
    return code
