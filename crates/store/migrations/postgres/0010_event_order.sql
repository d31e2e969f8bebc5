-- The order of events goes on in another cluster, where transaction numbers begin anew after a dump is restored: what is
-- added to them stands in these functions, and is raised when the store is opened (src/postgres/event_order.rs).
CREATE FUNCTION event_xact() RETURNS BIGINT LANGUAGE sql STABLE
    AS 'SELECT pg_current_xact_id()::text::bigint + 0::bigint';
-- The first transaction that may still be open: events of those before it are all there.
CREATE FUNCTION settled_xact() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + 0::bigint';

ALTER TABLE events ALTER COLUMN xact SET DEFAULT event_xact();
