"""How good is it?

Measures, comparisons and gates over judged data.
"""
