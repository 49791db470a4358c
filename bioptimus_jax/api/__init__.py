"""What `import bioptimus_jax` offers to Python: functions that take and give objects of transformers."""
