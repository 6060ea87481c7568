"""What an agent can beside its turns: one file or folder for each feature."""
