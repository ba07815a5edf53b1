"""What is secret in a record, and how it is masked."""
