"""Fine-tuning any encoder on sets of a task, and scores that can be trusted."""
