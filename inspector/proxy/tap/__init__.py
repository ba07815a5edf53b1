"""On the master's host: the kernel hands new connections of agents to the proxy for a while, and takes them back.

The way is TPROXY: a packet for the master's port is given to a local socket and stays as it is. So a firewall sees the
true port, and connections that are open are left alone, when it begins and when it ends. Direct is the default: the
port stands in a set of the kernel, from which it disappears 3 s after the last time that somebody saw the proxy answer.
"""
