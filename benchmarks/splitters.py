"""Sentence splitters under one signature, and biomedical cases that are hard for them.

`make(NAME)` gives a function from a text without line breaks to its sentences in order; ModuleNotFoundError where the
library is not installed. A case is the list of sentences that make it up.
"""

import itertools
import re
from collections.abc import Callable, Sequence

from bioptimus_jax.corpus.audit import reduced

Splitter = Callable[[str], Sequence[str]]
OURS, LIBRARY = 'ours', 'blingfire'


def boundaries(sentences: Sequence[str]) -> set[int]:
    """Letters and digits before every boundary inside the text that the sentences make up."""
    ends = list(itertools.accumulate(len(reduced(sentence)) for sentence in sentences))
    return {end for end in ends if 0 < end < ends[-1]}


def make(name: str, training: Sequence[str] = ()) -> Splitter:
    """The splitter of that name; `training` is text for those that learn their abbreviations from the field."""
    return _punkt(training) if name == 'nltk_punkt' else MAKERS[name]()


def _ours() -> Splitter:
    from bioptimus_jax.text.splitting import split_sentences

    return split_sentences


def _blingfire() -> Splitter:
    import blingfire

    return lambda text: blingfire.text_to_sentences(text).split('\n')


def _pysbd() -> Splitter:
    import pysbd

    return pysbd.Segmenter(language='en', clean=False).segment


def _syntok() -> Splitter:
    from syntok import segmenter

    def split(text: str) -> list[str]:
        return [
            ''.join(token.spacing + token.value for token in sentence)
            for paragraph in segmenter.analyze(text)
            for sentence in paragraph
        ]

    return split


def _spacy() -> Splitter:
    import spacy

    pipeline = spacy.blank('en')
    pipeline.add_pipe('sentencizer')
    return lambda text: [sentence.text for sentence in pipeline(text).sents]


def _sentencex() -> Splitter:
    import sentencex

    return lambda text: list(sentencex.segment('en', text))


def _nupunkt() -> Splitter:
    import nupunkt

    return nupunkt.sent_tokenize


def _icu() -> Splitter:
    from icu4py.breakers import SentenceBreaker

    # The locale's list of abbreviations after which no sentence ends.
    return lambda text: list(SentenceBreaker(text, 'en_US@ss=standard'))


def _punkt(training: Sequence[str]) -> Splitter:
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

    trainer = PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    trainer.train('\n'.join(training), finalize=True)
    return PunktSentenceTokenizer(trainer.get_params()).tokenize


def _regex() -> Splitter:
    return re.compile(r'(?<=[.!?])\s+(?=[A-Z0-9])').split


MAKERS: dict[str, Callable[[], Splitter]] = {
    OURS: _ours,
    LIBRARY: _blingfire,
    'regex': _regex,
    'spacy_sentencizer': _spacy,
    'sentencex': _sentencex,
    'nupunkt': _nupunkt,
    'icu': _icu,
    'syntok': _syntok,
    'pysbd': _pysbd,
}
NAMES = (*MAKERS, 'nltk_punkt')
PACKAGES = ('blingfire', 'icu4py', 'nltk', 'nupunkt', 'pysbd', 'sentencex', 'spacy', 'syntok')

HARD = (
    ('As shown in Fig. 1, binding was lost.', 'It returned after washing.'),
    ('The vectors (see Figs. 2 and 3) were purified.', 'Yields were low.'),
    ('Smith et al. reported the same effect.', 'We could not confirm it.'),
    ('Morphine was given at 5 mg/kg i.v. before surgery.', 'Rats recovered within 2 h.'),
    ('The dose was 10 mg/kg i.p. and 20 mg/kg s.c. in mice.', 'No deaths occurred.'),
    ('Cultures of E. coli were grown overnight.', 'S. aureus was added later.'),
    ('Infection with S. aureus or P. Aeruginosa was common.', 'C. albicans was rare.'),
    ('A dose of 0.5 mg was enough.', 'Higher doses (1.5 to 2.0 mg) were toxic.'),
    ('The difference was significant (p < .05).', 'No other effect was seen.'),
    ('Survival improved, P = .03 vs. placebo.', 'Toxicity did not.'),
    ('Treated vs. untreated cells differed by approx. 20%.', 'Controls did not differ.'),
    ('Samples were sent to Dr. Jones for analysis.', 'He found no virus.'),
    ('One locus, i.e. HLA-DR, was linked.', 'Others, e.g. HLA-A, were not.'),
    ('Strain no. 12 was sequenced (GenBank acc. no. X12345).', 'It was new.'),
    ('Kits were from Merck Inc. and Roche Ltd. in Basel.', 'All were used as supplied.'),
    ('Reagents were obtained from Amersham Inc.', 'Cells were grown in RPMI.'),
    ('Drugs were given i.v.', 'Blood was drawn hourly.'),
    ('All animals were injected i.p.', 'The brains were removed after 24 h.'),
    ('Peptides bound to HLA-A.2 with high affinity.', 'Binding needed calcium.'),
    ('Patients received (1) aspirin, (2) heparin, or (3) both.', 'Bleeding was rare.'),
    ('The aims were: 1. to find mutations; 2. to test them.', 'Both were met.'),
    ('(Values are means.)', 'All tests were two-sided.'),
    ('Cells died within 3 days (data not shown; cf. Table 2).', 'Growth stopped.'),
    ('The subsp. enterica and Salmonella sp. strains grew.', 'Others did not.'),
    ('Streptomyces spp. produce many antibiotics.', 'Their genomes are large.'),
    ('Was the effect specific?', 'It was not.', 'Why?'),
    ('Activity was lost at 37 degrees C.', 'It was stable at 4 degrees C.'),
    ('Patients had deficiency of vitamin D.', 'Calcium was normal.'),
    ('This was mediated by protein kinase C.', 'Inhibitors blocked it.'),
    ('T cells were CD4+.', 'B cells were not.', 'mRNA was absent.'),
    ('The U.S. Food and Drug Administration approved it.', 'Sales began in the U.K. in May.'),
    ('Age was 45.3 +/- 2.1 years.', 'In 1998, 12 patients died.', '30% of them were men.'),
    ('The pH was 7.4.', '5-HT was added.', 'p53 was induced.'),
    ('Extracts of Ginkgo biloba L. were tested.', 'Arabidopsis thaliana (L.) Heynh. was the control.'),
    ('We saw 20 adults (incl. 3 with asthma).', 'It took conc. 5 mM (refs. 12 and 13).', '5-HT rose.'),
    ('BACKGROUND: Asthma is common.', 'METHODS: We studied 20 children.', 'RESULTS: None improved.'),
)
