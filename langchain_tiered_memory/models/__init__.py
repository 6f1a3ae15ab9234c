"""What is known about models: profiles, windows, token counting, calibration, embeddings."""
