-- Transaction (event_xact) of the last change that affects how the mail of a server or account is sent: delivery reads only
-- rows changed since its last read.
ALTER TABLE servers ADD COLUMN changed_xact BIGINT NOT NULL DEFAULT 0;
ALTER TABLE servers ALTER COLUMN changed_xact SET DEFAULT event_xact();
ALTER TABLE accounts ADD COLUMN changed_xact BIGINT NOT NULL DEFAULT 0;
CREATE INDEX servers_by_change ON servers (changed_xact);
CREATE INDEX accounts_by_change ON accounts (changed_xact);
CREATE FUNCTION note_setup_change() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN NEW.changed_xact := event_xact(); RETURN NEW; END';
CREATE TRIGGER servers_changed BEFORE UPDATE OF suspended_reason, pool_id, send_rate, delete_at ON servers FOR EACH ROW
    WHEN ((OLD.suspended_reason, OLD.pool_id, OLD.send_rate, OLD.delete_at)
          IS DISTINCT FROM (NEW.suspended_reason, NEW.pool_id, NEW.send_rate, NEW.delete_at))
    EXECUTE FUNCTION note_setup_change();
CREATE TRIGGER accounts_changed BEFORE UPDATE OF suspended_reason, send_rate, delete_at ON accounts FOR EACH ROW
    WHEN ((OLD.suspended_reason, OLD.send_rate, OLD.delete_at)
          IS DISTINCT FROM (NEW.suspended_reason, NEW.send_rate, NEW.delete_at))
    EXECUTE FUNCTION note_setup_change();

-- Entries by actor. A user who accepts an invitation has no id before the entry; its subject is the actor.
CREATE INDEX audit_by_actor_id ON audit (account_id,
    (CASE WHEN actor_id = 0 AND actor = 'user' AND subject = 'user' THEN subject_id ELSE actor_id END), at, seq);

-- Lists of credentials by name.
CREATE INDEX credentials_by_name ON credentials (name, id);
CREATE INDEX credentials_by_account_name ON credentials (account_id, name, id);
CREATE INDEX credentials_by_server_name ON credentials (server_id, name, id);

-- Revoked credentials that the retention job removes.
CREATE INDEX credentials_by_revocation ON credentials (revoked_at) WHERE revoked_at IS NOT NULL;
