"""Two runs compared: what is different, from decoded documents, as plain data. No I/O."""
