"""Models behind an HTTP endpoint: vectors, questions put into other words, claims scored, and judgements of what an agent said.

Text leaves the machine here and nowhere else; what comes back is checked before it is used.
"""
