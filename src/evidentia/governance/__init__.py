"""What happens to a run?

Runs, decisions and the policies that were in force.
"""
