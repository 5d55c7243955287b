"""Many linear questions at once: workloads, strategies for them, and answers with the least error."""
