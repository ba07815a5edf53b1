"""From records to findings and verdicts."""
