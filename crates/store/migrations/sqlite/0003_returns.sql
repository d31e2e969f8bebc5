-- Finds the bounces and complaints of a message.
CREATE INDEX messages_by_bounce_for ON messages (server_id, bounce_for_id) WHERE bounce_for_id <> 0;
