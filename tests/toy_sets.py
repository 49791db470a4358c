"""A tiny encoder and a set of entities that it can learn."""

import dataclasses
import random

import torch

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.loading import load_head
from bioptimus_jax.finetuning.stored import load_parts
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.sets.tags import labels_of
from bioptimus_jax.tokenizer.kinds.wordpiece import make

DRUGS = ('zolmipan', 'tercivir', 'amlozine', 'bexocillin')


OTHER = ('the', 'patient', 'got', 'with', 'daily', 'dose', 'of', 'and')


SPELLING = ('zol', '##mipan', 'terci', '##vir', 'amlo', '##zine', 'bexo', '##cillin')


LETTERS = 'abcdefghijklmnopqrstuvwxyz'


TYPES = ['Drug']


class Frame:
    """A table as pandas has one, as far as it is asked: an iteration gives the names of its columns."""

    def __init__(self, rows):
        self.rows, self.columns = rows, list(rows[0]) if rows else ['text']

    def __iter__(self):
        return iter(self.columns)

    def to_dict(self, orient):
        assert orient == 'records'
        return self.rows


def load_tagger(folder, types, chosen, seed):
    return load_head(ENTITIES, folder, labels_of(types, chosen.scheme), chosen, seed)


def kept_tagger(folder, chosen):
    """The tagger in a folder with the head that it was kept with."""
    return load_parts(folder, ENTITIES.hf_class).head(ENTITIES.head, chosen, 'float32').eval()


def save_encoder(folder, kind='bert', layers=2, **changes):
    """A Hugging Face folder with a random masked language model and a tokenizer that knows the words above."""
    import transformers

    shape = {
        'num_hidden_layers': layers,
        'hidden_size': 32,
        'num_attention_heads': 2,
        'intermediate_size': 64,
        'max_position_embeddings': 128,
    }
    if kind in ('roberta', 'longformer', 'roberta-prelayernorm'):
        shape |= {'vocab_size': save_byte_level(folder, 'RobertaTokenizerFast')}
        shape['max_position_embeddings'] = 130
        shape |= {'attention_window': 4} if kind == 'longformer' else {}
    elif kind in ('modernbert', 'eurobert', 'ultrabert'):  # they have no class of tokenizers of their own
        shape |= {'vocab_size': save_byte_level(folder, 'PreTrainedTokenizerFast'), 'pad_token_id': 1}
        shape |= {'bos_token_id': 0, 'eos_token_id': 2}
        if kind == 'modernbert':
            shape |= {'cls_token_id': 0, 'sep_token_id': 2}
        else:
            shape |= {'num_key_value_heads': 1}
            shape |= {'prediction_head_size': 16, 'sliding_window': 4} if kind == 'ultrabert' else {}
    else:
        shape['vocab_size'] = save_wordpiece(folder, pad=int(kind == 'mpnet'))
    if kind == 'deberta-v2':
        shape |= {'relative_attention': True, 'share_att_key': True, 'position_biased_input': False}
        shape |= {'norm_rel_ebd': 'layer_norm', 'pos_att_type': 'p2c|c2p', 'position_buckets': 16}
    elif kind == 'mpnet':
        shape['max_position_embeddings'] = 130
    elif kind == 'distilbert':
        names = {'hidden_size': 'dim', 'num_attention_heads': 'n_heads', 'num_hidden_layers': 'n_layers'}
        names['intermediate_size'] = 'hidden_dim'
        shape = {names.get(name, name): value for name, value in shape.items()}
    elif kind == 'big_bird':
        shape['attention_type'] = 'original_full'
    elif kind in ('electra', 'albert'):
        shape['embedding_size'] = 16
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **shape, **changes)
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    return folder


def save_wordpiece(folder, pad=0):
    specials = ['[UNK]', '[CLS]', '[SEP]', '[MASK]']
    specials.insert(pad, '[PAD]')
    vocabulary = [*specials, *OTHER, *SPELLING, *LETTERS, *('##' + c for c in LETTERS), '.', '-']
    make(vocabulary, True).save(folder, 128)
    return len(vocabulary)


def save_byte_level(folder, hf_class, ids=None, merges=None):
    """RoBERTa's kind: a space belongs to the word after it. By default it knows the words above, and every byte."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    specials = dict(cls='<s>', pad='<pad>', sep='</s>', unk='<unk>', mask='<mask>')
    if merges is None:
        known = [part[2:] if part.startswith('##') else f'Ġ{part}' for part in (*OTHER, *SPELLING)]
        merges = list(dict.fromkeys((part[:n], part[n]) for part in known for n in range(1, len(part))))
        names = [*specials.values(), *sorted(pre_tokenizers.ByteLevel.alphabet()), *map(''.join, merges)]
        ids = {name: at for at, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token='<unk>'))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(('</s>', 2), ('<s>', 0))
    named = {f'{role}_token': token for role, token in specials.items()}
    made = getattr(transformers, hf_class)(tokenizer_object=tokenizer, model_max_length=128, **named)
    made.save_pretrained(folder)
    return len(ids)


def save_set(folder, sentences=(120, 30, 30), generator=None):
    """Drugs, some with a second word, among common words."""
    generator = generator or random.Random(1)
    folder.mkdir(exist_ok=True)
    for split, count in zip(('train', 'devel', 'test'), sentences, strict=True):
        lines = []
        for _ in range(count):
            for _ in range(generator.randint(3, 8)):
                if generator.random() < 0.25:
                    lines.append(f'{generator.choice(DRUGS)}\tB-Drug')
                    lines += ['dose\tI-Drug'] * (generator.random() < 0.3)
                else:
                    lines.append(f'{generator.choice(OTHER[:5])}\tO')
            lines.append('')
        (folder / f'{split}.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')
    return folder


def settings(**changes):
    small = {'epochs': 4, 'learning_rate': 5e-3, 'batch_sentences': 8, 'max_pieces': 64, 'overlap_pieces': 8}
    return dataclasses.replace(Finetune(), **{**small, **changes})
