-- The search index is rebuilt, because it now has tokens of digits.
DROP TABLE search_postings;
DROP TABLE search_blocks;
CREATE TABLE search_blocks (
    server_id INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    ids BLOB NOT NULL,
    PRIMARY KEY (server_id, first_id)
);
CREATE INDEX search_blocks_unchecked ON search_blocks (last_id) WHERE state = 1;
CREATE TABLE search_postings (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    token INTEGER NOT NULL,
    positions BLOB NOT NULL,
    PRIMARY KEY (server_id, block, token)
) WITHOUT ROWID;

-- Old blocks are merged, so that a search over many messages reads few blocks. More values of `search_blocks.state`: 3 merged
-- block; its postings have the key -1 - first_id, and its parts are removed after `claimed_until`, unless that is 0. 4 part of a
-- merged block, which searches do not read. In state 2, `claimed_until` is the end of a node's claim to merge the blocks that
-- begin here.
CREATE INDEX search_blocks_checked ON search_blocks (server_id, first_id) WHERE state = 2;
CREATE INDEX search_blocks_with_parts ON search_blocks (claimed_until) WHERE state = 3 AND claimed_until > 0;

-- Incremented by every change; a caller can refuse to overwrite a change that it has not seen.
ALTER TABLE webhooks ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
