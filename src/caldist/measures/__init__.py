"""One file per measure: its definition, what it means, what it estimates, what it costs."""
