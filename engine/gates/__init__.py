"""Pure checks: on a candidate, on texts, on drift. They decide; they load and store nothing."""
