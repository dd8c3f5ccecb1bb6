"""How does a request get in and an answer out?

Doors: they translate and refuse to decide.
"""
