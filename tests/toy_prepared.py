"""A set as TensorFlow Datasets prepares it."""


def prepare(folder, records, tags_feature, **others):
    """Write records as TFDS does, ArrayRecord in one shard a split; `others`: further features by name."""
    import tensorflow_datasets as tfds

    class Made(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version('1.0.0')
        name = 'made'

        def _info(self):
            features = {
                'tokens': tfds.features.Sequence(tfds.features.Text()),
                'ner_tags': tfds.features.Sequence(tags_feature),
                **others,
            }
            return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

        def _split_generators(self, manager):
            return {split: self._generate_examples(rows) for split, rows in records.items()}

        def _generate_examples(self, rows):
            yield from enumerate(rows)

    builder = Made(data_dir=str(folder), file_format='array_record')
    builder.download_and_prepare()
    return folder / 'made'
