"""A stand-in for the Hugging Face hub: what its client asks for when it lists, fetches, makes and commits."""

import base64
import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = 1000  # bytes, from which a file is uploaded by itself
MAIN = 'main'
API = re.compile(r'/api/(models|datasets|spaces)/([^/]+/[^/]+)(?:/([a-z-]+)(?:/([^/]+)(?:/(.*))?)?)?')
FILE = re.compile(r'/(?:(datasets|spaces)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)')
LFS = re.compile(r'/(?:(?:datasets|spaces)/)?[^/]+/[^/]+\.git/info/lfs/objects/batch')


class Hub:
    """Repositories by (kind, OWNER/NAME), each a list of commits (hash, files), the last one is main; `branches` beside
    it by (kind, OWNER/NAME, branch), their newest commit.

    `asked`: method and path of every request. `token`: what a request must bring, where there is one. `gated`:
    repositories that nobody may read.
    """

    def __init__(self):
        self.repositories, self.private, self.tags, self.blobs = {}, {}, {}, {}
        self.branches = {}
        self.asked, self.token, self.gated = [], '', ()
        self.endpoint = ''

    def commit(self, kind, name, files, branch=MAIN):
        """Add files; gives the hash."""
        commits = self.repositories.setdefault((kind, name), [])
        if branch != MAIN:
            before = self.branches[kind, name, branch]
            whole = {**(before[1] if before else {}), **files}
            made = hashlib.sha1(repr((branch, sorted(whole.items()))).encode()).hexdigest(), whole
            self.branches[kind, name, branch] = made
            return made[0]
        whole = {**(commits[-1][1] if commits else {}), **files}
        commits.append(
            (hashlib.sha1(repr((len(commits), sorted(whole.items()))).encode()).hexdigest(), whole)
        )
        return commits[-1][0]

    def at(self, kind, name, revision):
        """Hash and files of a branch, tag or commit; None for another."""
        commits = self.repositories[kind, name]
        known = {oid: files for oid, files in commits}
        known |= dict(filter(None, (self.branches[key] for key in self.branches if key[:2] == (kind, name))))
        if (kind, name, revision) in self.branches:
            return self.branches[kind, name, revision] or ('', {})
        oid = commits[-1][0] if commits and revision == MAIN else self.tags.get(revision, revision)
        return (oid, known[oid]) if oid in known else None


@contextlib.contextmanager
def serving():
    """A hub with nothing in it; `endpoint` is what HF_ENDPOINT would be."""
    hub = Hub()
    server = ThreadingHTTPServer(('127.0.0.1', 0), type('Handler', (_Handler,), {'hub': hub}))
    hub.endpoint = f'http://127.0.0.1:{server.server_port}'
    thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._route()

    do_HEAD = do_POST = do_PUT = do_GET

    def _route(self):
        path = (
            unquote(urlsplit(self.path).path, encoding='utf-8')
            if '%2F' not in self.path
            else urlsplit(self.path).path
        )
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        hub = self.hub
        hub.asked.append((self.command, path))
        if hub.token and self.headers.get('Authorization') != f'Bearer {hub.token}' and '/lfs/' not in path:
            return self._fail(401, 'RepoNotFound', 'Repository not found')
        if path == '/api/repos/create':
            return self._create(json.loads(body))
        if path == '/api/validate-yaml':
            content = json.loads(body)['content']
            assert content.startswith('---\n')
            if 'license: none' in content:
                return self._json({'errors': [{'message': '"license" must be one of'}], 'warnings': []}, 400)
            return self._json({'errors': [], 'warnings': []})
        if path.startswith('/lfs/'):
            oid = path.removeprefix('/lfs/')
            assert hashlib.sha256(body).hexdigest() == oid
            hub.blobs[oid] = body
            return self._json({})
        if LFS.fullmatch(path):
            return self._batch(json.loads(body))
        if found := FILE.fullmatch(path):
            kind = found[1] or 'models'
            return self._file(kind, found[2], unquote(found[3]), unquote(found[4]))
        if found := API.fullmatch(path):
            kind, name, what, revision, rest = found.groups()
            return self._api(kind, name, what, unquote(revision or MAIN), unquote(rest or ''), body)
        return self._fail(404, '', 'Not found')

    def _create(self, asked):
        key = f'{asked.get("type") or "model"}s', f'{asked["organization"]}/{asked["name"]}'
        assert key[0] != 'spaces' or asked['sdk'] == 'static'
        prefix = '' if key[0] == 'models' else f'{key[0]}/'
        url = f'{self.hub.endpoint}/{prefix}{key[1]}'
        if key in self.hub.repositories:
            return self._json({'url': url, 'error': 'You already created this repo'}, 409)
        self.hub.repositories[key] = []
        self.hub.private[key] = asked.get('visibility') == 'private'
        return self._json({'url': url})

    def _api(self, kind, name, what, revision, rest, body):
        hub = self.hub
        if (kind, name) not in hub.repositories:
            return self._fail(404, 'RepoNotFound', 'Repository not found')
        if name in hub.gated:
            return self._fail(403, 'GatedRepo', 'Access is restricted')
        if what == 'preupload':
            files = json.loads(body)['files']
            modes = [
                {
                    'path': f['path'],
                    'uploadMode': 'lfs' if f['size'] >= LARGE else 'regular',
                    'shouldIgnore': False,
                }
                for f in files
            ]
            return self._json({'files': modes})
        if what == 'commit':
            return self._commit(kind, name, body, revision)
        if what == 'refs':
            branches = [MAIN, *(key[2] for key in hub.branches if key[:2] == (kind, name))]
            named = lambda names: [{'name': n, 'ref': n, 'targetCommit': ''} for n in names]  # noqa: E731
            return self._json({'branches': named(branches), 'tags': named(hub.tags), 'converts': []})
        if what == 'branch':
            hub.branches[kind, name, revision] = hub.at(kind, name, MAIN)
            return self._json({})
        if what == 'tag':
            hub.tags[json.loads(body)['tag']] = revision
            return self._json({})
        at = hub.at(kind, name, revision)
        if not at and hub.repositories[kind, name]:
            return self._fail(404, 'RevisionNotFound', 'Invalid rev id')
        oid, files = at or ('', {})
        if what in (None, 'revision'):
            siblings = [{'rfilename': path} for path in sorted(files)]
            private = hub.private.get((kind, name), False)
            return self._json({'id': name, 'sha': oid, 'private': private, 'siblings': siblings})
        if what == 'paths-info':
            return self._json([e for path in parse_qs(body.decode())['paths'] for e in _entries(files, path)])
        assert what == 'tree', what
        inside = [path for path in files if not rest or path.startswith(f'{rest}/')]
        if rest and not inside:
            return self._fail(404, 'EntryNotFound', 'Entry not found')
        return self._json([_file_entry(path, files[path]) for path in sorted(inside)])

    def _commit(self, kind, name, body, branch):
        lines = [json.loads(line) for line in body.splitlines()]
        assert lines[0]['key'] == 'header'
        files = {}
        for line in lines[1:]:
            value = line['value']
            if line['key'] == 'lfsFile':
                files[value['path']] = self.hub.blobs[value['oid']]
            else:
                assert line['key'] == 'file'
                files[value['path']] = base64.b64decode(value['content'])
        oid = self.hub.commit(kind, name, files, branch)
        self._json({'commitUrl': f'{self.hub.endpoint}/{name}/commit/{oid}', 'commitOid': oid})

    def _batch(self, asked):
        objects = [
            {**one, 'actions': {'upload': {'href': f'{self.hub.endpoint}/lfs/{one["oid"]}'}}}
            for one in asked['objects']
        ]
        self._json({'transfer': 'basic', 'objects': objects})

    def _file(self, kind, name, revision, path):
        at = self.hub.at(kind, name, revision) if (kind, name) in self.hub.repositories else None
        if not at or path not in at[1]:
            return self._fail(404, 'EntryNotFound', 'Entry not found')
        oid, content = at[0], at[1][path]
        etag = hashlib.sha256(content).hexdigest()
        self._answer(200, content, {'X-Repo-Commit': oid, 'ETag': f'"{etag}"', 'Accept-Ranges': 'bytes'})

    def _json(self, value, status=200):
        self._answer(status, json.dumps(value).encode(), {'Content-Type': 'application/json'})

    def _fail(self, status, code, message):
        headers = {'X-Error-Code': code, 'X-Error-Message': message}
        self._answer(status, json.dumps({'error': message}).encode(), headers)

    def _answer(self, status, content, headers):
        self.send_response(status)
        for name, value in {**headers, 'Content-Length': str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(content)


def _file_entry(path, content):
    oid = hashlib.sha1(content).hexdigest()
    large = {'oid': hashlib.sha256(content).hexdigest(), 'size': len(content), 'pointerSize': 130}
    return {'type': 'file', 'path': path, 'size': len(content), 'oid': oid} | (
        {'lfs': large} if len(content) >= LARGE else {}
    )


def _entries(files, path):
    if path in files:
        return [_file_entry(path, files[path])]
    inside = any(name.startswith(f'{path}/') for name in files)
    return (
        [{'type': 'directory', 'path': path, 'oid': hashlib.sha1(path.encode()).hexdigest()}]
        if inside
        else []
    )
