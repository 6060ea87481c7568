"""What is measured. Each subject is a process of its own and speaks one JSON line per order."""
