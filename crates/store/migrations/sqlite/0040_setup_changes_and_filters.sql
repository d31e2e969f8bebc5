-- Number of the last change that affects how the mail of a server or account is sent: delivery reads only rows changed since
-- its last read. There is one writer, so the numbers follow the order of the commits.
CREATE TABLE setup_changes (last INTEGER NOT NULL);
INSERT INTO setup_changes VALUES (0);
ALTER TABLE servers ADD COLUMN changed_xact INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN changed_xact INTEGER NOT NULL DEFAULT 0;
CREATE INDEX servers_by_change ON servers (changed_xact);
CREATE INDEX accounts_by_change ON accounts (changed_xact);
CREATE TRIGGER servers_added AFTER INSERT ON servers BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE servers SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;
CREATE TRIGGER servers_changed AFTER UPDATE OF suspended_reason, pool_id, send_rate, delete_at ON servers
    WHEN (OLD.suspended_reason, OLD.pool_id, OLD.send_rate, OLD.delete_at)
         IS NOT (NEW.suspended_reason, NEW.pool_id, NEW.send_rate, NEW.delete_at) BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE servers SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;
CREATE TRIGGER accounts_changed AFTER UPDATE OF suspended_reason, send_rate, delete_at ON accounts
    WHEN (OLD.suspended_reason, OLD.send_rate, OLD.delete_at)
         IS NOT (NEW.suspended_reason, NEW.send_rate, NEW.delete_at) BEGIN
    UPDATE setup_changes SET last = last + 1;
    UPDATE accounts SET changed_xact = (SELECT last FROM setup_changes) WHERE id = NEW.id;
END;

-- Entries by actor. A user who accepts an invitation has no id before the entry; its subject is the actor.
CREATE INDEX audit_by_actor_id ON audit (account_id,
    (CASE WHEN actor_id = 0 AND actor = 'user' AND subject = 'user' THEN subject_id ELSE actor_id END), at, seq);

-- Lists of credentials by name.
CREATE INDEX credentials_by_name ON credentials (name, id);
CREATE INDEX credentials_by_account_name ON credentials (account_id, name, id);
CREATE INDEX credentials_by_server_name ON credentials (server_id, name, id);

-- Revoked credentials that the retention job removes.
CREATE INDEX credentials_by_revocation ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
