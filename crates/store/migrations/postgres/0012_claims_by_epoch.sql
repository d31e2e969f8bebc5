-- Finds claims of expired leases without reading those of valid leases.
DROP INDEX queue_by_claim;
CREATE INDEX queue_by_claim ON queue (claimed_node, claimed_epoch) WHERE claimed_node IS NOT NULL;
