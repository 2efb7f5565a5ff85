"""What handlers and clients wrote down themselves, held against what the store says."""
