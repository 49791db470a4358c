#!/usr/bin/env bash
# trectools 0.0.50 with pandas 3.0.6: means, intervals and t-tests of the reciprocal rank and of bpref are computed
# without the topics for which a system found nothing. So the worse system wins.
#   - 20 topics. System A has a relevant document in first or second place for each, and a mean reciprocal rank of 0.6.
#     System B has one in first place for 6 topics, none for the other 14, and a mean of 0.3.
#   - `procedures.extract_metric_from_results(results, 'recip_rank')` gives 0.6 for A, and 1.0 with an interval of no
#     width for B. `plot_system_rank` draws these numbers, so B comes first in the figure. For bpref it is 0.2 and 1.0,
#     where the means are 0.2 and 0.3.
#   - `results_of_A.compare_with(results_of_B, 'recip_rank')` tests the 6 topics alone: t is -3.16 and p is 0.025, so B
#     is significantly better. Over all topics t is 2.85 and p is 0.010, so A is. The line that it prints says that the
#     two results do not share the same topics. They do, and where both fail on the same topics it prints nothing.
#   - The reason: with `per_query=True` the two metrics have no row for a topic without a relevant document in its
#     ranking. P@k and MAP have one with 0. For all topics (`get_result`) all are right, 0.6 and 0.3. With pandas 2.3.3
#     the reciprocal rank has NaN there, which one sees, and bpref has no row either.
# The README makes a figure of systems in this way, with P@10, and that one is right. The docstrings promise a value per
# query. It hurts whoever draws MRR with intervals or tests it, and the harder the topics, the more. Remedy: reindex
# what `get_results_for_metric` gives by `run.topics()` with 0 for missing ones, and then take means and tests. Seen on
# 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install trectools==0.0.50 pandas==3.0.6 numpy==1.26.4 pytrec_eval-terrier==0.5.11
cat > "$folder/try.py" <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytrec_eval
from scipy import stats

warnings.simplefilter('ignore')
from trectools import TrecEval, TrecQrel, TrecRun, procedures  # noqa: E402

print('trectools', version('trectools'))
TOPICS = [f'topic{number:02d}' for number in range(20)]
JUDGEMENTS = {topic: {f'{topic}-good': 1, f'{topic}-bad': 0} for topic in TOPICS}


def ranking(topic, *names):
    """Documents of a topic with falling scores."""
    return {f'{topic}-{name}': float(len(names) - rank) for rank, name in enumerate(names)}


SYSTEMS = {
    'A': {topic: ranking(topic, *(('good', 'bad') if number % 5 == 0 else ('bad', 'good')))
          for number, topic in enumerate(TOPICS)},
    'B': {topic: ranking(topic, 'good' if number < 6 else 'bad', 'other') for number, topic in enumerate(TOPICS)},
}
judgements = TrecQrel()
judgements.qrels_data = pd.DataFrame(
    [(topic, '0', name, grade) for topic, names in JUDGEMENTS.items() for name, grade in names.items()],
    columns=['query', 'q0', 'docid', 'rel'])


def evaluated(system):
    """The results of a system by the package, topic by topic."""
    rows = [(topic, 'Q0', name, rank, score, system)
            for topic, names in SYSTEMS[system].items() for rank, (name, score) in enumerate(names.items(), 1)]
    run = TrecRun()
    run.load_run_from_dataframe(pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rank', 'score', 'system']))
    return TrecEval(run, judgements).evaluate_all(per_query=True)


def of_trec_eval(system, metric):
    """The values of all topics by trec_eval's own code."""
    found = pytrec_eval.RelevanceEvaluator(JUDGEMENTS, {metric}).evaluate(SYSTEMS[system])
    return np.array([found[topic][metric] for topic in TOPICS])


results = {system: evaluated(system) for system in SYSTEMS}
SEEN = {'recip_rank': {'A': (0.6, 0.6), 'B': (1.0, 0.3)}, 'bpref': {'A': (0.2, 0.2), 'B': (1.0, 0.3)}}
for metric, systems in SEEN.items():
    for system, (seen, right) in systems.items():
        ((name, mean, half),) = procedures.extract_metric_from_results([results[system]], metric)
        topics = len(results[system].get_results_for_metric(metric))
        values = of_trec_eval(system, metric)
        whole = results[system].get_result(metric)
        print(f'{metric} of {name}: {mean:.3f} +- {half:.3f} from {topics} topics, right {values.mean():.3f}')
        assert round(mean, 3) == seen, 'topics without a hit are counted now'
        assert topics == (20 if system == 'A' else 6)
        assert round(values.mean(), 3) == round(whole, 3) == right
    assert half == 0.0

# Another metric has all topics.
assert [len(results[system].get_results_for_metric('P_5')) for system in 'AB'] == [20, 20]

test = results['A'].compare_with(results['B'], 'recip_rank')
by_hand = stats.ttest_rel(of_trec_eval('A', 'recip_rank'), of_trec_eval('B', 'recip_rank'))
print(f't {test.statistic:.2f} and p {test.pvalue:.4f}, right {by_hand.statistic:.2f} and {by_hand.pvalue:.4f}')
assert (round(test.statistic, 2), round(test.pvalue, 3)) == (-3.16, 0.025), 'the test takes other topics now'
assert (round(by_hand.statistic, 2), round(by_hand.pvalue, 3)) == (2.85, 0.010)

# The remedy.
filled = [pd.Series(results[system].get_results_for_metric('recip_rank')).reindex(TOPICS).fillna(0) for system in 'AB']
assert [round(values.mean(), 3) for values in filled] == [0.6, 0.3]
assert round(stats.ttest_rel(*filled).pvalue, 3) == 0.010
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: a topic for which nothing was found is no topic.'
