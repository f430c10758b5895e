"""Files that are whole or absent, and cannot be damaged unnoticed."""
