"""Files that must survive a crash: atomic writes, the directory lock."""
