"""The page in a browser: headless Chromium, asked through its debugging pipe."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_measures import MASKED, TOKENS, WORDS_15, WORDS_20, fabricate, make

from bioptimus_jax.report import comparison, page

CHROMIUM = next((x for x in ('chromium', 'chromium-browser', 'google-chrome') if shutil.which(x)), None)
FLAGS = (
    '--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking '
    '--disable-component-update --disable-dev-shm-usage --remote-debugging-pipe about:blank'
).split()
# Chromium reads commands from descriptor 3 and answers on 4.
LAUNCH = 'import os, sys; r, w, *rest = sys.argv[1:]; os.dup2(int(r), 3); os.dup2(int(w), 4); os.execvp(rest[0], rest)'
PHONE, DESKTOP = 390, 1280
PAPER = 688  # A4 without margins of 14 mm, at 96 pixels an inch

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason='no Chromium: `apt-get install chromium`')


class Browser:
    """One tab; `call` sends a command and waits for its answer, `events` are what came in between."""

    def __init__(self, profile):
        to_it, from_it = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_it[0], from_it[1])]
        command = [
            sys.executable,
            '-c',
            LAUNCH,
            *map(str, theirs),
            CHROMIUM,
            *FLAGS,
            f'--user-data-dir={profile}',
        ]
        self.process = subprocess.Popen(command, pass_fds=theirs, stderr=subprocess.DEVNULL)
        for end in (*theirs, to_it[0], from_it[1]):
            os.close(end)
        self.input, self.output = os.fdopen(to_it[1], 'wb'), os.fdopen(from_it[0], 'rb')
        self.sent, self.session, self.waiting, self.events = 0, None, b'', []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')

    def call(self, method, **parameters):
        self.sent += 1
        message = {'id': self.sent, 'method': method, 'params': parameters}
        message |= {'sessionId': self.session} if self.session else {}
        self.input.write(json.dumps(message).encode() + b'\0')
        self.input.flush()
        while (answer := self.read()).get('id') != self.sent:
            self.events.append(answer)
        assert 'error' not in answer, answer
        return answer['result']

    def read(self):
        while b'\0' not in self.waiting:
            part = os.read(self.output.fileno(), 65536)
            assert part, 'Chromium has gone'
            self.waiting += part
        message, _, self.waiting = self.waiting.partition(b'\0')
        return json.loads(message)

    def open(self, path):
        self.call('Page.navigate', url=Path(path).resolve().as_uri())
        while not any(e.get('method') == 'Page.loadEventFired' for e in self.events):
            self.events.append(self.read())

    def evaluate(self, expression):
        found = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in found, found
        return found['result'].get('value')

    def resize(self, width, media='', scheme='light'):
        size = {'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': width == PHONE}
        self.call('Emulation.setDeviceMetricsOverride', **size)
        features = [{'name': 'prefers-color-scheme', 'value': scheme}]
        self.call('Emulation.setEmulatedMedia', media=media, features=features)

    def close(self):
        self.input.close()
        self.output.close()
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(scope='module', params=['of a run', 'of several'])
def browser(tmp_path_factory, request):
    """A browser with the page of a finished run or of several, fabricated but drawn by the program."""
    folder = tmp_path_factory.mktemp('page')
    made = page_of_a_run(folder) if request.param == 'of a run' else page_of_several(folder)
    opened = Browser(folder / 'profile')
    try:
        opened.open(made / 'index.html')
        yield opened
    finally:
        opened.close()


def page_of_a_run(folder):
    run = fabricate(folder / 'demo')
    (run.workdir / 'report').mkdir()
    page.build(run, run.workdir / 'report')
    return run.workdir / 'report'


def page_of_several(folder):
    """Two orders and two initialisations, on as many sets as the paper has, two seeds."""
    phases = [TOKENS, WORDS_15, WORDS_20, MASKED]
    sets = ('bc5-chem', 'bc5-disease', 'ncbi-disease', 'bc2gm', 'jnlpba')
    for number, (arm, order) in enumerate({'a': phases, 'b': phases[::-1]}.items()):
        for seed in (0, 1):
            right = {model: dict.fromkeys(sets, 100 + 20 * number + seed) for model in ('initial', 0, 3)}
            make(folder / 'orders' / f'{arm}.seed-{seed}', order, right, seed, losses=5.0 + number)
    for number, strategy in enumerate(('contextualized', 'random_rows')):
        for seed in (0, 1):
            right = {model: dict.fromkeys(sets, 90 + 20 * number + seed) for model in ('initial', 0)}
            changes = {'surgery__strategy': strategy}
            make(folder / 'table2' / f'{strategy}.seed-{seed}', [TOKENS], right, seed, **changes)
    return comparison.write([folder / 'orders', folder / 'table2'], folder / 'tables')


def test_nothing_is_fetched_and_nothing_goes_wrong(browser):
    asked = [
        e['params']['request']['url'] for e in browser.events if e['method'] == 'Network.requestWillBeSent'
    ]
    assert asked[0].endswith('/index.html')
    assert [url for url in asked[1:] if not url.startswith('data:')] == []
    wrong = [e for e in browser.events if e['method'] in ('Runtime.exceptionThrown', 'Log.entryAdded')]
    wrong += [e for e in browser.events if e['method'] == 'Runtime.consoleAPICalled']
    assert wrong == []
    # What is seen is what this test would have caught.
    before = len(browser.events)
    browser.evaluate("console.error('seen'); fetch('https://example.invalid/x').catch(() => 0)")
    seen = {e['method'] for e in browser.events[before:]}
    assert {'Runtime.consoleAPICalled', 'Network.requestWillBeSent'} <= seen


def test_every_figure_is_drawn(browser):
    browser.resize(DESKTOP)
    drawn = browser.evaluate(
        """[...document.querySelectorAll('[role=img]')].map(box => {
          const svg = box.querySelector('svg'), size = svg.getBoundingClientRect();
          const marks = [...svg.querySelectorAll('path, use, text')].filter(x => x.getBoundingClientRect().width > 0);
          const lost = [...svg.querySelectorAll('use')].filter(
            x => !document.getElementById(x.getAttribute('xlink:href').slice(1)));
          return [box.getAttribute('aria-label'), size.width, size.height, marks.length, lost.length];
        })"""
    )
    of_several = browser.evaluate("Boolean(document.querySelector('#effort'))")
    assert len(drawn) == 2 if of_several else len(drawn) > 10
    for label, width, height, marks, lost in drawn:
        assert len(label) > 40, label
        assert width > 400, label
        assert height > 100, label
        assert marks > 10, label
        assert lost == 0, label
    images = browser.evaluate('[...document.images].filter(x => !x.complete || !x.naturalWidth).length')
    assert images == 0


@pytest.mark.parametrize('browser', ['of a run'], indirect=True)
def test_a_click_sorts_a_table(browser):
    column = """(table, name) => {
      const heads = [...table.tHead.rows[0].cells], at = heads.findIndex(x => x.textContent === name);
      return [heads[at], [...table.tBodies[0].rows].map(x => x.cells[at])];
    }"""

    def values(name, click):
        return browser.evaluate(
            f"""(() => {{
              const table = document.querySelector('#phases table'), column = {column};
              if ({json.dumps(click)}) column(table, '{name}')[0].querySelector('button').click();
              const [head, cells] = column(table, '{name}');
              return [head.ariaSort, cells.map(x => x.dataset.value ? +x.dataset.value : x.textContent)];
            }})()"""
        )

    before = values('held-out loss', click=False)[1]
    assert before == sorted(before, reverse=True)
    assert values('held-out loss', click=True) == ['ascending', sorted(before)]
    assert values('held-out loss', click=True) == ['descending', before]
    order, names = values('phase', click=True)
    assert (order, names) == ('ascending', ['0.1', '0.2', '0.3', '0.4', 'initial (step 0)'])
    assert values('held-out loss', click=False)[0] is None


def test_every_table_can_be_sorted(browser):
    """Each keeps its rows; empty cells come last either way."""
    broken = browser.evaluate(
        """[...document.querySelectorAll('table:has(thead)')].filter(table => {
          const rows = table.tBodies[0].rows.length;
          return [...table.tHead.rows[0].cells].some((head, at) => [1, 2].some(() => {
            head.querySelector('button').click();
            const cells = [...table.tBodies[0].rows].map(row => row.cells[at]);
            if (cells.length !== rows || !head.ariaSort) return true;
            if (!head.classList.contains('number')) return false;
            const given = cells.map(x => parseFloat(x.dataset.value)), known = given.filter(x => !isNaN(x));
            const sign = head.ariaSort === 'ascending' ? 1 : -1;
            return known.some((x, i) => given[i] !== x || (i && sign * (x - known[i - 1]) < 0));
          }));
        }).map(table => table.closest('figure').textContent.slice(0, 60))"""
    )
    assert broken == []


@pytest.mark.parametrize(
    ('width', 'media', 'scheme'),
    [(DESKTOP, '', 'light'), (PHONE, '', 'light'), (PHONE, '', 'dark'), (PAPER, 'print', 'light')],
)
def test_the_page_is_as_wide_as_its_window(browser, width, media, scheme):
    browser.resize(width, media, scheme)
    wide = browser.evaluate(
        """[document.documentElement.scrollWidth, innerWidth,
          [...document.querySelectorAll('main *')].filter(x => !x.closest('.scroll > *'))
            .filter(x => x.getBoundingClientRect().right > innerWidth + 1)
            .map(x => x.tagName + ' ' + x.textContent.slice(0, 40))]"""
    )
    assert wide[0] <= wide[1] == width
    assert wide[2] == []


def test_tables_fit_on_paper(browser):
    """On a screen a wide table scrolls; on paper it cannot."""
    browser.resize(PAPER, 'print')
    cut = browser.evaluate(
        """[...document.querySelectorAll('.scroll')].filter(
          x => x.firstElementChild.getBoundingClientRect().right > innerWidth + 1
        ).map(x => x.closest('figure')?.querySelector('figcaption').textContent)"""
    )
    assert cut == []
    hidden = browser.evaluate("getComputedStyle(document.querySelector('nav')).display")
    assert hidden == 'none'


def test_folded_tables_are_opened_for_the_printer(browser):
    opened = browser.evaluate(
        """['beforeprint', 'afterprint'].map(name => {
          dispatchEvent(new Event(name));
          return [...document.querySelectorAll('details.tables')].map(folded => folded.open);
        })"""
    )
    assert len(opened[0]) > 0
    assert all(opened[0])
    assert not any(opened[1])


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_text_and_lines_stand_out_in_light_and_dark(browser, scheme):
    """Contrast of at least 4.5 for text and 3 for lines (WCAG 2.2, 1.4.3 and 1.4.11)."""
    browser.resize(DESKTOP, scheme=scheme)
    colours = browser.evaluate(
        """(() => {
          const style = getComputedStyle(document.documentElement), names = ['paper', 'ink', 'quiet', 'accent'];
          for (let i = 0; i < 7; i++) names.push('series-' + i);
          return Object.fromEntries(names.map(name => {
            const box = document.body.appendChild(document.createElement('i'));
            box.style.color = `var(--${name})`;
            const found = getComputedStyle(box).color.match(/\\d+/g).map(Number);
            box.remove();
            return [name, found];
          }));
        })()"""
    )
    background = browser.evaluate(
        'getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)'
    )
    assert background == colours['paper']
    assert (luminance(background) < 0.1) == (scheme == 'dark')
    for name, colour in colours.items():
        if name != 'paper':
            low, high = sorted((luminance(background), luminance(colour)))
            least = 3 if name.startswith('series') else 4.5
            assert (high + 0.05) / (low + 0.05) >= least, name


def luminance(colour):
    """Relative luminance of sRGB (WCAG 2.2)."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (c / 255 for c in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
