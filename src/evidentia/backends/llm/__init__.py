"""Models behind an HTTP endpoint that speaks the dialect of OpenAI: vectors, and questions put into other words.

Needs the extra `llm`. Text leaves the machine here and nowhere else; what comes back is checked before it is used.
"""
