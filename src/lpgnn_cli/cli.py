"""The `lpgnn` command."""


def main() -> int:
    return 0
