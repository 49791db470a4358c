"""BERT in Flax Linen behind plain functions over nested dicts; the only folder that imports flax."""
