"""Which tables does a question mean, and which statement asks it of them?

Pure reading of questions against cards and cells: tables are ranked, words are linked to names and values, a plan is made or declined.
"""
