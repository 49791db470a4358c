"""Pre-training objectives: a file each; its name is the value of `config.pretrain.objective`."""
