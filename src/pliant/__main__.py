"""``python -m pliant`` is the ``pliant`` command."""

from pliant.app.cli import main

main()
