"""Search by vectors: their files, exact scans, HNSW graphs, and the spaces they live in."""
