"""Tests of the engine; a package, so that its conftest has a name of its own."""
