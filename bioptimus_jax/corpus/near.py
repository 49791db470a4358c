"""stub"""

import numpy as np


def signatures(texts, settings):
    return np.zeros((len(texts), 120), np.uint32)


def near_duplicates(parts, chosen, settings, folder, advance, check_stop):
    return np.zeros(sum(map(len, chosen)), bool)
