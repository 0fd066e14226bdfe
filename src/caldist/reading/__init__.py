"""Files as they come: what a cell, a line and a header mean, whatever is installed."""
