"""Tables as `datasets` leaves them: a folder saved to disk, and Parquet files with its metadata, as on the hub."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from bioptimus_jax.storage.files import write_json

TEXT = {'dtype': 'string', '_type': 'Value'}


def label(*names):
    """The type of a column of labels."""
    return {'names': list(names), '_type': 'ClassLabel'}


def each(feature):
    """The type of a column of lists."""
    return {'feature': feature, '_type': 'List'}


def table(columns, features=None):
    """A table, with the types in its schema where they are given."""
    made = pa.table(columns)
    if features:
        return made.replace_schema_metadata({'huggingface': json.dumps({'info': {'features': features}})})
    return made


def save_to_disk(folder, columns, features=None, shards=2):
    """One split, as `Dataset.save_to_disk` writes it: streams of Arrow, their names, the types of columns."""
    made, names = table(columns, features), []
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(shards):
        start, stop = (made.num_rows * n // shards for n in (number, number + 1))
        names.append(f'data-{number:05}-of-{shards:05}.arrow')
        with pa.OSFile(str(folder / names[-1]), 'wb') as file, pa.ipc.new_stream(file, made.schema) as writer:
            writer.write_table(made.slice(start, stop - start), max_chunksize=2)
    write_json(folder / 'state.json', {'_data_files': [{'filename': name} for name in names], '_split': None})
    write_json(folder / 'dataset_info.json', {'citation': '', 'features': features or {}, 'splits': None})
    return folder


def save_splits(folder, splits, features=None, **how):
    """Several, as `DatasetDict.save_to_disk`."""
    for name, columns in splits.items():
        save_to_disk(folder / name, columns, features, **how)
    write_json(folder / 'dataset_dict.json', {'splits': list(splits)})
    return folder


def parquet(columns, features=None):
    """The bytes of a Parquet file, as `push_to_hub` makes them."""
    sink = pa.BufferOutputStream()
    pq.write_table(table(columns, features), sink, row_group_size=2)
    return sink.getvalue().to_pybytes()


def put(folder, files):
    """Write bytes under their names."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
