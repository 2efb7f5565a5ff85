"""What a store can do, one file for each part of a job's life."""
