"""Known flaws of the pinned dependencies: pip-audit over constraints.txt, and a plain word where it could ask nobody.

The package index is asked for advisories. Not every index has them, and pip-audit then calls everything clean. So first
a release with a published flaw is audited: only where that flaw comes back is the rest worth asking for.

Exit codes: 0 no known flaw, or not audited; 1 a known flaw; 4 not audited, with --strict.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parents[1] / 'constraints.txt'
KNOWN_FLAW = 'jinja2==2.10'  # CVE-2019-10906, a way out of the sandbox
CLEAN, FLAWED, NOT_AUDITED = 0, 1, 4
# Advisories that do not concern us: id -> why.
NOT_OURS: dict[str, str] = {}
SECONDS = 300


def audited(requirements: str, program: list[str]) -> list[dict[str, Any]]:
    """What pip-audit knows of pinned requirements, a record for each. Raises OSError and ValueError where it fails."""
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as file:
        file.write(requirements)
        file.flush()
        flags = ['--no-deps', '--disable-pip', '--progress-spinner=off', '--format=json', '--timeout=10']
        result = subprocess.run(
            [*program, '--requirement', file.name, *flags], capture_output=True, text=True, timeout=SECONDS
        )
    try:
        return json.loads(result.stdout)['dependencies']
    except (ValueError, KeyError):
        raise ValueError((result.stderr.strip().splitlines() or ['no answer'])[-1][:200]) from None


def main(arguments: list[str]) -> int:
    """Audit the constraints; prints what was found and returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument(
        '--strict', action='store_true', help=f'exit with {NOT_AUDITED} where nobody can be asked'
    )
    parser.add_argument('--program', default=f'{sys.executable} -m pip_audit', help='how pip-audit is called')
    parser.add_argument('--constraints', type=Path, default=CONSTRAINTS)
    options = parser.parse_args(arguments)
    program = options.program.split()
    lines = options.constraints.read_text('utf-8').splitlines()
    pins = [line for line in lines if line and not line.startswith('#')]
    try:
        known = audited(f'{KNOWN_FLAW}\n', program)
        answers = bool(known) and bool(known[0].get('vulns'))
        reason = (known[0].get('skip_reason') if known else '') or f'it knows no flaw of {KNOWN_FLAW}'
        found = audited('\n'.join(pins) + '\n', program) if answers else []
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        answers, reason, found = False, str(error), []
    if not answers:
        print(f'audit: NOT AUDITED: no advisory service ({reason}); repeat it where there is one')
        return NOT_AUDITED if options.strict else CLEAN
    flaws = [(r['name'], r.get('version'), v) for r in found for v in r.get('vulns', ())]
    flaws = [flaw for flaw in flaws if not {flaw[2]['id'], *flaw[2].get('aliases', ())} & NOT_OURS.keys()]
    for name, version, flaw in flaws:
        print(
            f'audit: {name} {version}: {flaw["id"]}, fixed in {", ".join(flaw["fix_versions"]) or "no release"}'
        )
    unknown = [r['name'] for r in found if 'skip_reason' in r]
    print(
        f'audit: {len(pins)} pins, {len(flaws)} known flaws; the index does not know: {", ".join(unknown) or "none"}'
    )
    return FLAWED if flaws else CLEAN


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
