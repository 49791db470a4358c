"""Encoders in Flax Linen over nested dicts of parameters, and their folders; nothing else imports flax."""
