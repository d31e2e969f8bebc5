-- Search index, built after messages are accepted. A block is a range of message ids of one server, about 4,096 messages.
-- Blocks have no gaps between them; messages newer than the last block are scanned. `ids`: ids of the messages of the
-- block. A posting lists the positions in the block of the messages that contain one token. `state`: 0 being written
-- until `claimed_until`, 1 written, 2 checked for messages that were stored late.
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

-- The key begins with the block, so that the rows of a block are written and removed together.
CREATE TABLE search_postings (
    server_id INTEGER NOT NULL,
    block INTEGER NOT NULL,
    token INTEGER NOT NULL,
    positions BLOB NOT NULL,
    PRIMARY KEY (server_id, block, token)
) WITHOUT ROWID;

-- Rare statuses whose messages have no queue entry. Accepting and ordinary delivery do not write to this index.
CREATE INDEX messages_by_rare_status ON messages (server_id, status, id)
    WHERE status IN ('Held', 'HardFail', 'Bounced', 'HoldCancelled', 'Cancelled');
