"""What every wing uses: random streams and distributions, time, files, budgets, exit statuses."""
