"""Kinds of fine-tuning: a file each, named by its value of config.finetune.task; it holds TASK."""
