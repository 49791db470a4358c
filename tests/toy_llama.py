"""A byte-level tokenizer as Llama 3 and EuroBERT have it."""

import json

LLAMA = {
    **{'<s>': '<|begin_of_text|>', '</s>': '<|end_of_text|>', '<pad>': '<|pad|>', '<mask>': '<|mask|>'},
    '<unk>': '<|reserved_special_token_0|>',
}
"""RoBERTa's special tokens -> those of EuroBERT, which are Llama 3's; none is unknown."""
LLAMA_WORDS = r"'s|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def save_like_llama(subwords, folder, model_max_length):
    """A byte-level tokenizer cut and named as Llama 3's: no space goes with a number, and numbers have three digits."""
    state = json.loads(subwords.tokenizer.to_str())
    model, split = state['model'], {'type': 'Split', 'pattern': {'Regex': LLAMA_WORDS}}
    model |= {'vocab': {LLAMA.get(t, t): i for t, i in model['vocab'].items()}, 'ignore_merges': True}
    for token in state['added_tokens']:
        token['content'] = LLAMA[token['content']]
    level = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': False}
    split |= {'behavior': 'Isolated', 'invert': False}
    state['pre_tokenizer'] = {'type': 'Sequence', 'pretokenizers': [split, level]}
    cls, sep = LLAMA['<s>'], LLAMA['</s>']
    ends = {t: {'id': t, 'ids': [model['vocab'][t]], 'tokens': [t]} for t in (cls, sep)}
    first, last = ({'SpecialToken': {'id': t, 'type_id': 0}} for t in (cls, sep))
    one, two = ({'Sequence': {'id': name, 'type_id': 0}} for name in 'AB')
    around = {'type': 'TemplateProcessing', 'single': [first, one, last], 'special_tokens': ends}
    around['pair'] = [first, one, last, two, last]
    state['post_processor'] = {'type': 'Sequence', 'processors': [level, around]}
    (folder / 'tokenizer.json').write_text(json.dumps(state))
    named = {'bos_token': cls, 'eos_token': sep, 'mask_token': LLAMA['<mask>'], 'pad_token': LLAMA['<pad>']}
    named |= {'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': model_max_length}
    (folder / 'tokenizer_config.json').write_text(json.dumps(named))
