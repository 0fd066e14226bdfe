"""``python -m caldist.paper``: reproduce the figures and statements of the paper."""

from __future__ import annotations

import traceback

import click

from caldist.paper import run


@click.command()
@click.option(
    "--out",
    default="caldist-paper",
    show_default=True,
    metavar="FOLDER",
    help="The folder to write to.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Coarser and with fewer repetitions: seconds instead of minutes.",
)
def main(*, out: str, quick: bool) -> None:
    """Reproduce the figures and statements of the paper.

    Ends with exit code 2 where the folder cannot be written to, and 70 for an error in caldist.
    """
    try:
        written = run(out, quick=quick)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        raise click.exceptions.Exit(130) from None
    except Exception:  # noqa: BLE001 -- an exit code of its own: 1 would read as an alarm
        click.echo(traceback.format_exc(), err=True, nl=False)
        raise click.exceptions.Exit(70) from None
    click.echo(f"{len(written)} files written; open {written[-1]}")


if __name__ == "__main__":
    main(prog_name="python -m caldist.paper")
