"""Tests of governance; a package, so that its oracle and its doors can be named."""
