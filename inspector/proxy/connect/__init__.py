"""The agent uses the proxy as an HTTP proxy (CONNECT), for one run: nothing else about it changes.

For each server that the agent wants to reach, the proxy first looks at it as this agent would verify it
(``acceptance``). What the agent would refuse is passed on unread (``tunnel``), so the agent prints its own words. What
it would accept is intercepted (``interception``), with a certificate of a CA that exists in memory only; the agent
trusts it because the run's own copies of its files contain it (``files``).
"""
