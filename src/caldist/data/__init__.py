"""What a sample is: rows, checked and sorted once, and the distribution they make."""
