"""Fine-tuning on named-entity recognition, and entity-level scores that can be trusted."""
