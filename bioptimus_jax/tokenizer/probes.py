"""Texts in which two tokenizers would part: what is compared before one is taken for another."""

PROBES = (
    '',
    'Aspirin (ASA), 5-FU & β-Catenin',
    'Naïve COX-2 µg/mL é\u0301',
    '白血病 \u200bIL\u00ad2 [MASK]',
    'ÅNGSTRÖM Straße İstanbul ΣΊΣΥΦΟΣ ǅ Ещё й ﬁbre Ｆｕｌｌ ½ Ⅷ',
    'x\u0000y\u0007z\ufffd a\tb\r\nc\u00a0d\u2003e\u3000f\u2028g\u0085h',
    'tumor白血病cell한국어日本ｶﾅ𠀀 กำ नमस्ते שָׁלוֹם مُحَمَّد',
    "don't e.g. p<0.05; α-syn_1 [a] {b} ~^`|+=$€£ “q” — … 100% #tag @me https://a.b/c?d",
    '[CLS] a [SEP] [PAD] [UNK] [mask] [MASK]. x[MASK]y  [ MASK ] ##a # #',
    'x' * 100 + ' ' + 'x' * 101 + ' 😀👩‍🔬 ☃\ufe0f',
)
"""Casing, accents, ideographs, controls, zero width, punctuation, special tokens, long words."""
