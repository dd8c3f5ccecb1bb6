"""What does a user hold?

`connect`, `Base` and `AsyncBase`; the async form is written once and the sync form wraps it.
"""
