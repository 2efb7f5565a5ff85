"""The pages of the dashboard, one file per topic."""
