"""What models answer: a file each, which `model.KINDS` names, with a function `answers`."""
