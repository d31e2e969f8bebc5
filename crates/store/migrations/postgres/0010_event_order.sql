-- Keeps the order of events when a dump is restored into another cluster, where transaction numbers start again. These
-- functions add a constant to the numbers; opening the store raises the constant (src/postgres/event_order.rs).
CREATE FUNCTION event_xact() RETURNS BIGINT LANGUAGE sql STABLE
    AS 'SELECT pg_current_xact_id()::text::bigint + 0::bigint';
-- First transaction that may still be open: all events of earlier transactions are visible.
CREATE FUNCTION settled_xact() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + 0::bigint';

ALTER TABLE events ALTER COLUMN xact SET DEFAULT event_xact();
