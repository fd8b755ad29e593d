"""Ends the process as soon as the tests have: `bpy` 4.2 and 4.5 may crash or hang while Python takes them down."""

import os
import sys

import pytest

status = 0


def pytest_sessionfinish(session, exitstatus):
    global status
    status = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if "bpy" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
