"""Who asks? From a credential to a token, a principal and what both may do; every door lets in by the same rule."""
