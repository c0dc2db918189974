"""What is said of a run in one line, and how text reaches a terminal or a pipe."""

from __future__ import annotations

from rich.console import Console

from lpgnn_cli.formatting import one_line
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.settings import read_flat_config, uses_g


def describe(run: RunFolder) -> str:
    """What ran, in one line: dataset, propagation, aggregator, G and K."""
    settings, record = read_flat_config(run.config_path), run.read_record()
    parts = [settings.get("dataset.name") or record.dataset or record.name]
    parts += [settings.get(f"{group}.name", "") for group in ("propagation", "aggregator")]
    if "g.name" in settings and uses_g(settings):
        parts.append(f"G = {settings['g.name']}")
    elif "propagation.updates" in settings:
        frozen = settings.get("propagation.states") == "frozen"
        parts.append("frozen" if frozen else settings["propagation.updates"])
    if settings.get("layers", "null") != "null":
        parts.append(f"K = {settings['layers']}")
    if settings.get("protocol.stage") == "select":
        parts.append("test = inner validation parts")
    return one_line(", ".join(part for part in parts if part))


def is_screen(console: Console) -> bool:
    """Whether cursor movements, colours and Unicode are welcome.

    `Console.is_terminal` alone is also true in a pipe under FORCE_COLOR, as some CI systems set it.
    """
    isatty = getattr(console.file, "isatty", None)
    return (
        isatty is not None
        and bool(isatty())
        and not console.is_dumb_terminal
        and console.encoding.lower().startswith("utf")
    )


def write_plain(console: Console, text: str) -> None:
    """Text as it is, for pipes and logs; what the encoding lacks becomes a question mark."""
    encoding = getattr(console.file, "encoding", None) or "utf-8"
    console.file.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    console.file.flush()
