"""On what does it run? Another Evidentia, over HTTP.

Needs the extra `remote`.
"""
