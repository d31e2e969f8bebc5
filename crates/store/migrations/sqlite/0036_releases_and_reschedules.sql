-- Time when a held message was released: its retry period starts then.
ALTER TABLE queue ADD COLUMN released_at INTEGER;
-- Send times set by send/reschedule, as a JSON list.
ALTER TABLE messages ADD COLUMN rescheduled TEXT;
-- Scheduled messages of a server in the order in which they become due.
CREATE INDEX queue_scheduled_by_server_due ON queue (server_id, due_at, message_id) WHERE scheduled > 0;
-- Names of templates become unique: duplicates, except the oldest, get their id appended. First, existing names that equal
-- such a new name get their own id appended twice, which makes them unique.
UPDATE templates SET name = name || ' (template ' || id || ') (template ' || id || ')'
WHERE name LIKE '% (template %)' AND EXISTS (
    SELECT 1 FROM templates t WHERE t.server_id = templates.server_id AND t.id <> templates.id
        AND templates.name = t.name || ' (template ' || t.id || ')');
UPDATE templates SET name = name || ' (template ' || id || ')' WHERE EXISTS (
    SELECT 1 FROM templates t
    WHERE t.server_id = templates.server_id AND t.name = templates.name AND t.id < templates.id);
CREATE UNIQUE INDEX templates_by_name ON templates (server_id, name);
