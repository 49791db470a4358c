"""Stable 64-bit hashes of strings: whatever is chosen, split or ordered by one comes out the same everywhere."""

import hashlib


def hash64(text: str, *, key: bytes = b'', purpose: bytes = b'') -> int:
    """BLAKE2b of the text's UTF-8, below 2**64; another `key` or `purpose` gives a hash that knows nothing of this."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=key, person=purpose).digest()
    return int.from_bytes(digest, 'little')
