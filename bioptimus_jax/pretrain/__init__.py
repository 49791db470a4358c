"""Curriculum masked-language-model pre-training: rows, masks, schedule, the sharded step, checkpoints."""
