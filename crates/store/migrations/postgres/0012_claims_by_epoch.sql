-- Claims of leases that are over are found without a look at those that are not.
DROP INDEX queue_by_claim;
CREATE INDEX queue_by_claim ON queue (claimed_node, claimed_epoch) WHERE claimed_node IS NOT NULL;
