"""What the documentation shows of the laboratory: its commands are run, and it names no command and no file in vain."""

import pkgutil

import pytest
from toy_docs import (
    OF_THE_LAB,
    PAGES,
    README,
    RUN,
    cases,
    check_named,
    dead_in,
    named_in,
    needs_the_lab,
    run_in,
)

from bioptimus_jax.lab import verbs

# As tests/test_docs.py.
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize('page', cases([page for page in RUN if needs_the_lab(page)]))
def test_commands_do_what_the_page_says(page, request, programs, tmp_path):
    run_in(tmp_path / 'here', page, request, programs)


def test_its_commands_and_its_code_that_pages_name_exist():
    seen = set()
    for page in [README, *PAGES]:
        for command in filter(OF_THE_LAB.match, named_in(page)[0]):
            check_named(page, command)
            seen.add(command.split()[0])
        assert not dead_in(page)
    assert seen == {verb.name for verb in pkgutil.iter_modules(verbs.__path__)}
