"""Rules of the tests, as Galaxy loads them: a package."""
