"""The page in a browser: headless Chromium, asked through its debugging pipe."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from toy_measures import MASKED, TOKENS, WORDS_15, WORDS_20, fabricate, make

from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.entities.files import write_predictions
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.report import page
from bioptimus_jax.run.folder import Run

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

    def mouse(self, kind, x, y, button='none'):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button=button, clickCount=1)

    def place(self, selector, number=0):
        """The middle of what is drawn there, scrolled into sight."""
        return self.evaluate(
            f"""(() => {{
              const found = document.querySelectorAll({json.dumps(selector)})[{number}];
              found.scrollIntoView({{block: 'center'}});
              const box = found.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )

    def close(self):
        self.input.close()
        self.output.close()
        self.process.terminate()
        self.process.wait(30)


# The page of several runs is the lab's.
PAGES = ['of a run', *(['of several'] if find_spec('bioptimus_jax.lab') else [])]


@pytest.fixture(scope='module', params=PAGES)
def browser(tmp_path_factory, request):
    """A browser with the page of a finished run or of several, fabricated but drawn by the program."""
    folder = tmp_path_factory.mktemp('page')
    made = page_of_a_run(folder) if request.param == 'of a run' else page_of_several(folder)
    opened = Browser(folder / 'profile')
    try:
        opened.open(made / 'index.html')
        # What only a researcher reads is folded: a link of the navigation opens it, and then all is looked at.
        if request.param == 'of a run':
            assert not opened.evaluate("document.querySelector('#vocabulary > details').open")
            assert opened.evaluate("document.querySelector('#phases > details') === null")
            opened.evaluate(
                "new Promise(done => { addEventListener('hashchange', done); location.hash = '#vocabulary'; })"
            )
            assert opened.evaluate("document.querySelector('#vocabulary > details').open")
        opened.evaluate("document.querySelectorAll('.whole-section').forEach(one => one.open = true)")
        opened.evaluate('scrollTo(0, 0)')
        yield opened
    finally:
        opened.close()


def page_of_a_run(folder):
    run = fabricate(folder / 'demo')
    words, gold = ('w',) * 40, ('B-X', *['O'] * 39)
    for model, found in (('initial', ('O',) * 40), ('0.4', gold)):
        cell = run.workdir / 'finetune' / model / 'drugs' / 'standard' / 'seed-0'
        write_predictions(cell / 'predictions.tsv', [Predicted(words, gold, found, 0)])
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
    from bioptimus_jax.lab import comparison

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
    seen = {e['method']: e for e in browser.events[before:]}
    assert 'Runtime.consoleAPICalled' in seen
    refused = seen['Log.entryAdded']['params']['entry']['text']  # by the policy of the page itself
    assert 'Content Security Policy' in refused


def test_every_figure_is_drawn(browser):
    browser.resize(DESKTOP)
    drawn = browser.evaluate(
        """[...document.querySelectorAll('.drawing')].map(box => {
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
    """A wide table scrolls on a screen; on paper it cannot."""
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
        """['as it is', 'beforeprint', 'afterprint'].map(name => {
          dispatchEvent(new Event(name));
          return [...document.querySelectorAll('details.tables')].map(folded => folded.open);
        })"""
    )
    assert not all(opened[0])
    assert all(opened[1])
    assert opened[2] == opened[0]


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


@pytest.mark.parametrize('browser', ['of a run'], indirect=True)
def test_a_pointer_finds_values_hides_lines_and_zooms(browser):
    """The figure of held-out losses, on record every fifty steps: 6.2 - step / 140, and four more lines."""
    browser.resize(DESKTOP)
    figure = 'figure:has(svg[data-name=heldout_loss])'
    line = browser.evaluate(
        f"""JSON.parse(document.querySelector('{figure} svg').dataset.charts)[0].lines['frozen mask'].at(-1)"""
    )
    points = f'{figure} [id$={line}] use'

    def hint(number):
        browser.mouse('mouseMoved', *browser.place(points, number))
        return browser.evaluate("document.querySelector('.hint:not([hidden])')?.textContent.split('\\n')")

    def shown():
        return browser.evaluate(f"""[document.querySelector('{points}').getBoundingClientRect().width > 0,
          document.querySelector('{figure} .keys button').ariaPressed,
          document.querySelector('{figure} .whole').hidden,
          document.querySelector('{figure} .plot')?.getAttribute('viewBox').split(' ').map(Number)]""")

    assert hint(3)[:2] == ['step 150', 'frozen mask: 5.129']
    assert 'masked as in 0.1: 5.029' in hint(3)
    assert shown()[:3] == [True, 'true', True]
    key = f"document.querySelector('{figure} .keys button').click()"
    browser.evaluate(key)
    assert shown()[:2] == [False, 'false']
    browser.evaluate(key)
    assert shown()[:2] == [True, 'true']
    _, y = browser.place(f'{figure} svg')
    ends = [browser.place(points, number)[0] for number in (1, 5)]
    for kind, x in (('mousePressed', ends[0]), ('mouseMoved', sum(ends) / 2), ('mouseReleased', ends[1])):
        browser.mouse(kind, x, y, 'left')
    view = shown()[3]
    assert shown()[2] is False
    apart = browser.place(points, 5)[0] - browser.place(points, 1)[0]
    assert apart > 1.5 * (ends[1] - ends[0])
    assert hint(3)[:2] == ['step 150', 'frozen mask: 5.129']
    ticks = browser.evaluate(
        f"[...document.querySelectorAll('{figure} .ticks text')].map(x => +x.textContent)"
    )
    assert {100, 150, 200} <= set(ticks)
    browser.evaluate(f"document.querySelector('{figure} .whole').click()")
    assert shown()[2] is True
    assert shown()[3][2] > view[2]


@pytest.mark.parametrize('browser', ['of a run'], indirect=True)
def test_on_a_phone_every_panel_is_as_wide_as_the_window_and_on_a_desk_figures_are_side_by_side(browser):
    size = """[...document.querySelectorAll('.drawing')].map(box => [
      box.scrollWidth <= box.clientWidth, [...box.querySelectorAll('svg')].filter(
        x => !x.closest('svg svg') && x.getBoundingClientRect().width
      ).map(x => x.getBoundingClientRect().width / innerWidth)])"""
    browser.resize(PHONE)
    found = browser.evaluate(size)
    assert all(fits for fits, _ in found)
    assert max(len(widths) for _, widths in found) > 1  # panels below one another
    assert all(0.5 < share <= 1 for _, widths in found for share in widths)
    browser.resize(DESKTOP)
    assert {len(widths) for _, widths in browser.evaluate(size)} == {1}
    used = browser.evaluate(
        """[...document.querySelectorAll('.figures')].map(box => {
          const all = [...box.children].map(x => x.getBoundingClientRect());
          return (Math.max(...all.map(x => x.right)) - Math.min(...all.map(x => x.left))) / box.clientWidth;
        })"""
    )
    assert min(used) > 0.95


@pytest.mark.parametrize('browser', ['of a run'], indirect=True)
def test_the_way_through_the_page_stays_in_sight(browser):
    browser.resize(DESKTOP)
    browser.evaluate('document.querySelector(\'nav a[href="#training"]\').click()')
    at = browser.evaluate(
        """new Promise(done => setTimeout(() => done([
          document.querySelector('nav').getBoundingClientRect().top,
          document.querySelector('#training h2').getBoundingClientRect().top,
          document.querySelector('nav [aria-current]')?.textContent]), 300))"""
    )
    assert at[0] == 0
    assert 0 < at[1] < 120
    assert at[2] == 'Training'


@pytest.mark.parametrize('browser', ['of a run'], indirect=True)
def test_the_page_of_a_run_that_goes_on_renews_itself_until_the_run_is_done(browser, tmp_path):
    """Last: it leaves the page of the other tests."""
    run = Run(tmp_path / 'run', Experiment(), quiet=True)
    (run.workdir / 'live').mkdir()
    page.build(run, run.workdir / 'live', page.Live('pretrain, step 150', '12:00:00', 0.5))
    browser.events.clear()
    loaded = 0

    def renewed():
        """What the page says of the run when it has been read again."""
        nonlocal loaded
        while (loads := sum(e.get('method') == 'Page.loadEventFired' for e in browser.events)) <= loaded:
            browser.events.append(browser.read())
        loaded = loads
        return browser.evaluate("document.querySelector('.live')?.textContent")

    browser.open(run.workdir / 'live' / 'index.html')
    assert 'In progress: pretrain, step 150. As of 12:00:00, rebuilt every 0.5 s.' in renewed()
    page.build(run, run.workdir / 'live', page.Live('pretrain, step 160', '12:00:01', 0.5))
    while 'step 160' not in renewed():
        pass
    page.build(run, run.workdir / 'live')
    while renewed():
        pass
    assert browser.evaluate('new Promise(done => setTimeout(() => done(1), 1000))') == 1
    assert sum(e.get('method') == 'Page.loadEventFired' for e in browser.events) == loaded
