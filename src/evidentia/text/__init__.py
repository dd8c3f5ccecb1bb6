"""What is a token, a sentence, a term weight?

One tokeniser and one BM25 arithmetic for every backend. Refuses floats wherever a score is compared.
"""
