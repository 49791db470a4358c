"""Plain English paragraphs on news, family, sport, weather, cooking and travel, for the source model."""

import dataclasses
import random

from bioptimus_jax.demo.grammar import Phrase, expand, syllables, text

NOUNS = (
    'apple bank basket beach bell bird boat book bottle box bread bridge brush bus cake camera candle car '
    'carpet castle chair cheese church clock cloud coat coffee coin corner cottage cup curtain desk '
    'dinner dog door dress drum egg engine farm fence field film fire fish flag flower forest fork garden '
    'gate glass glove goat grass guitar hall hammer harbour hat hill horse hotel house island jacket jar '
    'key kitchen knife ladder lake lamp leaf letter library lemon map market meadow melon message mirror '
    'moon mountain museum needle newspaper nest office onion orange orchard oven painting paper park path '
    'pear pencil piano picture pillow plate pocket pond potato pump queen rabbit radio railway ribbon '
    'ring river road roof rope sail salad sandwich school sea shelf ship shirt shoe shop sister soup '
    'spoon square stable stage stair star station stone storm story street suitcase summer sun sweater '
    'table teacher theatre ticket tomato tower town toy train tree trumpet tunnel umbrella valley van '
    'village violin wagon wall watch water whistle window winter wood wool'
).split()
ADJECTIVES = (
    'angry bitter blue bold brave brief bright broad broken calm careful cheap clean clear clever cold '
    'cool crowded curious dark deep dirty dry dull eager early empty fair famous fast fine flat fresh '
    'friendly funny gentle glad golden grand great green grey happy hard heavy high hot huge hungry kind '
    'large late lazy light little lonely long loud lovely low lucky modern narrow neat new noisy old pale '
    'plain pleasant polite poor pretty proud quick quiet rare ready red rich rough round sad sharp short '
    'shy silent simple slow small smooth soft sour square steep strange strong sudden sweet tall thick '
    'thin tiny tired warm weak wet white wide wild wise wooden yellow young'
).split()
VERBS = (
    'admire answer ask bake borrow call carry chase clean climb close collect cook count cover cross '
    'deliver discover draw empty enjoy enter explain explore fill finish fix follow gather greet guard '
    'help hide hunt invite join kick knock label lift light like load lock look mend miss move name need '
    'notice offer open order pack paint park pass pick plant play please point pour praise prepare press '
    'print pull push reach remember repair return roll save sell serve share show sign smell spill start '
    'stop study thank touch trade train trust try turn visit wait walk want warm wash watch water welcome '
    'whisper wish wonder work wrap'
).split()
JOBS = (
    'baker driver farmer singer painter teacher nurse doctor sailor lawyer tailor miner actor clerk'.split()
)
SPORTS = (
    'football tennis cricket rugby hockey rowing cycling swimming boxing golf basketball volleyball'.split()
)
MEALS = 'breakfast lunch dinner supper tea'.split()
MONTHS = ('January February March April May June July August September October November December').split()
DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()

TOPICS = {
    'news': (
        'the [mayor|council] of {town} said that the {adjective} {noun} would be {done} by {month} .',
        '{person} , a {job} from {town} , was {done} near the {noun} late on {day} .',
        'the government plans to spend {number} million on the {noun} and the {noun} in {year} .',
        'people in {town} {did} the {adjective} {noun} for {number} days .',
        'in a report , the {town} police {did} that {number} of the {nouns} were missing .',
        'hundreds of people came to the {noun} when {person} {did} it .',
    ),
    'family': (
        '{person} and [her|his] [mother|father|sister|brother] {did} the {adjective} {nouns} in the {noun} .',
        'my [aunt|uncle|cousin] {person} is a {job} and likes {nouns} .',
        'the children {did} a {adjective} {noun} , and {person} {did} another .',
        'when I was young , we {did} the {noun} every {day} .',
        '{person} {adverb} {did} the {noun} , because it was too {adjective} .',
    ),
    'sport': (
        '{town} won the {sport} match against {town} by {number} to {number} on {day} .',
        'the {adjective} {sport} team from {town} {did} its {noun} after {number} minutes .',
        '{person} {adverb} {did} in the final and {did} a {adjective} {noun} .',
        'a crowd of {number} thousand {did} when {person} scored in {month} .',
        'their coach , {person} , said that {sport} players [need|want] {adjective} {nouns} .',
    ),
    'weather': (
        'it was a {adjective} and {adjective} {day} in {town} , with rain over the {noun} .',
        'snow [fell|is expected] in {month} on the {nouns} around {town} .',
        'the wind {adverb} {did} across the {noun} and the sky was {adjective} .',
        'temperatures of {number} degrees were measured in {town} in {month} {year} .',
    ),
    'cooking': (
        'for {meal} , {verb} the {noun} with {adjective} butter and add {number} {nouns} .',
        'cook the {adjective} {noun} for {number} minutes and {verb} it {adverb} .',
        '{person} {did} {number} {nouns} and a {adjective} {noun} for {meal} .',
        'a {adjective} sauce goes well with the {noun} ; {verb} it before {meal} .',
    ),
    'travel': (
        'the {noun} from {town} to {town} takes {number} hours and {adverb} stops at a {noun} .',
        'we stayed in a {adjective} {noun} near {town} and {did} the {noun} in {month} .',
        'travellers {verb} the {adjective} {nouns} of {town} before they {verb} the {noun} .',
        '{person} {did} a ticket to {town} and left on {day} .',
        'from the {noun} you can {verb} the {adjective} {noun} of {town} .',
    ),
    'health': (
        'the doctor gave {person} a {adjective} medicine for [his|her] cough .',
        'patients at the hospital in {town} {did} the {adjective} treatment in {year} .',
        'a study of {number} children found that {nouns} and sleep are {adjective} for health .',
        '{person} was ill for {number} weeks , and the disease was {adjective} .',
    ),
}


@dataclasses.dataclass(frozen=True)
class General:
    """The words that general paragraphs draw on; people and towns are made up."""

    people: list[str]
    towns: list[str]

    @classmethod
    def of(cls, rng: random.Random) -> 'General':
        people = [syllables(rng, 2).title() + rng.choice(('', 'son', 'ley', 'ton')) for _ in range(900)]
        towns = [
            syllables(rng, 1).title() + rng.choice(('ville', 'ham', 'ford', 'bury', 'mouth'))
            for _ in range(500)
        ]
        return cls(people, towns)

    def paragraph(self, rng: random.Random) -> str:
        """Three to six sentences on one topic."""
        sentences = TOPICS[rng.choice(tuple(TOPICS))]
        return ' '.join(
            text(expand(rng, rng.choice(sentences), lambda kind: self.pick(rng, kind)))
            for _ in range(rng.randint(3, 6))
        )

    def pick(self, rng: random.Random, kind: str) -> Phrase:
        """A word for one slot of a template."""
        lists = {
            'person': self.people, 'town': self.towns, 'noun': NOUNS, 'adjective': ADJECTIVES, 'verb': VERBS,
            'job': JOBS, 'sport': SPORTS, 'meal': MEALS, 'month': MONTHS, 'day': DAYS,
        }  # fmt: skip
        if kind in lists:
            word = rng.choice(lists[kind])
        elif kind == 'nouns':
            word = plural(rng.choice(NOUNS))
        elif kind in ('did', 'done'):
            word = past(rng.choice(VERBS))
        elif kind == 'adverb':
            word = adverb(rng.choice(ADJECTIVES))
        else:
            word = str(rng.randint(1950, 2020) if kind == 'year' else rng.randint(2, 60))
        return (word,), ''


def plural(noun: str) -> str:
    """The regular plural; spelling needs no more than that here."""
    if noun.endswith('y') and noun[-2] not in 'aeiou':
        return noun[:-1] + 'ies'
    return noun + ('es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's')


def past(verb: str) -> str:
    """The regular past; irregular verbs aren't in the list, but for a few that are treated alike."""
    if verb.endswith('y') and verb[-2] not in 'aeiou':
        return verb[:-1] + 'ied'
    return verb + ('d' if verb.endswith('e') else 'ed')


def adverb(adjective: str) -> str:
    """-ly, after the change of y and le."""
    if adjective.endswith('y'):
        return adjective[:-1] + 'ily'
    return adjective[:-1] + 'y' if adjective.endswith('le') else adjective + 'ly'
