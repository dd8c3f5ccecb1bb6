"""What does an agent call?

Sessions, observation, the agent protocol, citations and the self-check.
"""
