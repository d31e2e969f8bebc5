-- The search index, filled behind the accepts. A block is a range of message ids of one server, about 4,096 messages;
-- blocks follow each other without gaps, and whatever is behind the newest is scanned. `ids` lists the messages of the
-- block; a posting lists, for one token, the positions in it. `state`: 0 being written until `claimed_until`, 1 written,
-- 2 checked for messages that were stored late.
CREATE TABLE search_blocks (
    server_id BIGINT NOT NULL,
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    state BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    ids BYTEA NOT NULL,
    PRIMARY KEY (server_id, first_id)
);
CREATE INDEX search_blocks_unchecked ON search_blocks (last_id) WHERE state = 1;

-- By block first, so that a block is written and removed in one piece.
CREATE TABLE search_postings (
    server_id BIGINT NOT NULL,
    block BIGINT NOT NULL,
    token BIGINT NOT NULL,
    positions BYTEA NOT NULL,
    PRIMARY KEY (server_id, block, token)
);

-- Statuses that few messages have and that no queue entry tells of. Neither an accept nor an ordinary delivery touches it.
CREATE INDEX messages_by_rare_status ON messages (server_id, status, id)
    WHERE status IN ('Held', 'HardFail', 'Bounced', 'HoldCancelled', 'Cancelled');
