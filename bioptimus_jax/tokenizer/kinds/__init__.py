"""Kinds of tokenizers, a file each: its name is the value of `config.vocab.tokenizer`, and it holds `KIND`."""
