"""A base as one directory: SQLite holds records, immutable segments hold what is searched.

A commit writes and syncs new segments, then names them in one SQLite transaction; there is no second commit point.
"""
