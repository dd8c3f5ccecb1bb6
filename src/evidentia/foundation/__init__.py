"""What does every room stand on?

Threads, caches, rate limits and outbound connections, each written once. Nothing here knows a word of the domain.
"""
