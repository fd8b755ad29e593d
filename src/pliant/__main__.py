"""``python -m pliant`` is the ``pliant`` command."""

from pliant.cli import main

main()
