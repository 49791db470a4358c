"""Bounds that several sections share."""

LARGEST_SEED = 2**31 - 1  # jax keeps 32 bits of a seed and drops the rest in silence
LARGEST_SIZE, MOST_LAYERS = 2**24, 2**10  # far above any BERT: more would only fill the memory
MOST_ROWS = 2**20  # 16 times the largest published batch (LAMB, 65,536)
SHORTEST_WINDOW = 16  # pieces: some words have to fit beside the special tokens
WIDEST_ROW = 2**16 - 1  # rows are stored with lengths and positions of 16 bits
LARGEST_BETA = 0.999999  # with 1, as float32 rounds what is nearer, Adam divides by 0
