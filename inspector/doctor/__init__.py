"""What is wrong in a directory, at a running master, or for agents that call the proxy: examined without changing it."""
