"""The dashboard: pages for people, rendered here, over the same operations that every other door offers."""
