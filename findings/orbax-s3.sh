#!/usr/bin/env bash
# Orbax 0.12.8 (with etils 1.15.0 and s3fs) takes `s3://bucket/run` for a checkpoint, writes the metadata into the bucket,
# and then loses one slash: the arrays are to go to the path `s3:/bucket/run`.
#   - as it comes (OCDBT): ValueError "Checkpoint path should be absolute. Got s3:/bucket/..."
#   - with use_ocdbt=False: the arrays land in a folder called `s3:` in the working directory of this machine, while the
#     bucket holds a checkpoint that is marked as committed (commit_success.txt) and has no array in it. What is raised is
#     FileNotFoundError, which does not name the folder.
# Seen with CheckpointManager, StandardCheckpointer and Checkpointer, given as text or as epath.Path. Whoever looks for
# the marker alone believes that the checkpoint is safe. A way that works: save on local disk and copy whole folders.
# The bucket here is moto's server on this machine.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install orbax-checkpoint==0.12.8 jax==0.10.2 etils==1.15.0 tensorstore==0.1.86 \
    s3fs==2026.9.0 'moto[server]==5.2.5' boto3
cd "$folder"
cat > try.py <<'PYTHON'
import os
from pathlib import Path

from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(port=0, verbose=False)
server.start()
address = 'http://{}:{}'.format(*server.get_host_and_port())
os.environ.update(
    AWS_ACCESS_KEY_ID='any',
    AWS_SECRET_ACCESS_KEY='any',
    AWS_DEFAULT_REGION='us-east-1',
    AWS_ENDPOINT_URL=address,
)
import boto3
import numpy as np
import orbax.checkpoint as ocp

client = boto3.client('s3')
client.create_bucket(Bucket='bucket')
tree = {'a': np.arange(1000.0)}


def raised(save):
    try:
        save()
    except Exception as error:
        return f'{type(error).__name__}: {error}'.splitlines()[0]
    return 'nothing'


def default():
    checkpointer = ocp.StandardCheckpointer()
    checkpointer.save('s3://bucket/default', tree)
    checkpointer.wait_until_finished()


def plain():
    ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=False)).save('s3://bucket/plain', tree)


for save in (default, plain):
    print(f'{save.__name__}: raised {raised(save)}')
keys = [entry['Key'] for entry in client.list_objects_v2(Bucket='bucket').get('Contents', [])]
print('in the bucket:', *sorted(keys))
local = sorted(str(path) for path in Path('.').glob('s3:/**/*') if path.is_file())
print('on this machine:', *local)
server.stop()
assert 'plain/commit_success.txt' in keys, 'no commit marker any more'
assert not [key for key in keys if key.startswith('plain/a')], 'the arrays are in the bucket now'
assert any('/a/' in name for name in local), 'the arrays are not on this machine any more'
PYTHON
env/bin/python try.py 2> errors.txt | tee seen.txt || { tail -5 errors.txt; exit 1; }
grep -q 'default: raised ValueError: Checkpoint path should be absolute' seen.txt
echo 'As stated: Orbax 0.12.8 and s3:// lose the arrays.'
