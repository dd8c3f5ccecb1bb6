"""What is looked for in a reply before it goes out; `audit` is the whole of it."""
