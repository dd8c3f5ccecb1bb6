"""Search by words: segments of postings, the term dictionary, and the view of one caller."""
