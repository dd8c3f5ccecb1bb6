"""How does material come in?

Walking, reading, chunking and preparing documents; refuses to decide where they are stored.
"""
