"""What is known of models: profiles, windows, token counting, calibration, embeddings."""
