"""In what order?

Pure scoring, fusion, conflict resolution and diversification.
"""
