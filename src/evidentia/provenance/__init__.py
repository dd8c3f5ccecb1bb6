"""Where did it come from?

Custody records, hash chains, the Merkle log and their verification, as pure functions of bytes.
"""
