"""Where might it be?

Sources outside the base, and the one guard every structured statement passes.
"""
