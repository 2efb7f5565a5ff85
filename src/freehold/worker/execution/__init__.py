"""Running one attempt of a job."""
