"""The origins of messages: how ``inspector/messages/origins.msgpack`` is made of the public sources of the programs."""
