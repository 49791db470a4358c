"""Sets of named entities, read from any form into sentences with IOB2 tags; what is known of BLURB's."""
