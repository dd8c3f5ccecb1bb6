"""What happens to a request?

The written flow from a checked request to a sealed answer.
"""
