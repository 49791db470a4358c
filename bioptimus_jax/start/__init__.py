"""The first config of one's own: what the texts, the source and the machine say, and what follows."""
