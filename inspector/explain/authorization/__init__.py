"""What an auth.conf allows and denies: pure decisions about requests."""
