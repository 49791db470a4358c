"""What ner.py and texts.py say of a fine-tuning: speeds, ratios of ours to them, scores over the seeds."""

import statistics
from typing import Any

from protocol import ratio

OURS = 'ours'
SPEEDS = ('train_sentences_per_second', 'predict_sentences_per_second')


def summary(name: str, rows: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Medians of a variant's speeds, ratios of ours to them within a round, and scores over the seeds."""
    measured = {key: [row[name][key] for row in rows] for key in (*SPEEDS, 'score')}
    scores = measured.pop('score')
    ours = {speed: [row[OURS][speed] for row in rows] for speed in SPEEDS}
    return {speed: statistics.median(values) for speed, values in measured.items()} | {
        'ours_over_it': {speed: ratio(ours[speed], values) for speed, values in measured.items()},
        'score': {'mean': statistics.mean(scores), 'min': min(scores), 'max': max(scores)},
    }


def print_table(table: dict[str, dict[str, Any]], label: str, fact: str) -> None:
    """`label`: what the score is; `fact`: of a variant, beside its threads."""
    columns = ''.join(f'{speed:>12}{"ours / it":>11}   {"range":9}' for speed in ('train/s', 'predict/s'))
    print(f'{"":15}{columns}{label:>10}   {"range":15}{"threads":>7}  {fact.replace("_", " ")}')
    for name, entry in table.items():
        print(f'{name:15}', end='')
        for speed in SPEEDS:
            over = entry['ours_over_it'][speed]
            span = f'{over["min"]:.2f}-{over["max"]:.2f}'
            print(f'{entry[speed]:12,.1f}{over["median"]:11.2f}   {span:9}', end='')
        score = entry['score']
        print(f'{score["mean"]:10.4f}   {score["min"]:.4f}-{score["max"]:.4f}', end='')
        print(f'{entry["threads"]:9}  {entry[fact]}')
