-- What comes back: bounces and complaints of a message are found by the message they are about.
CREATE INDEX messages_by_bounce_for ON messages (server_id, bounce_for_id) WHERE bounce_for_id <> 0;
