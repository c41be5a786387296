"""Tools of every wing: random streams and distributions, time, files, budgets, exit statuses."""
