"""A run folder: stages with manifests, made once, resumed, and shared by several processes."""
