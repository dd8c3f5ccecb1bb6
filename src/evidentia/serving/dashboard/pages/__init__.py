"""One module a page: each says where it stands in the navigation and which routes it answers."""
