"""What a master's own logs say about the time of requests: their lines, read and matched with recorded exchanges."""
